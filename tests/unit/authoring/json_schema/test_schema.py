"""The JSON Schema of eval files accepts what the loader accepts and rejects common mistakes."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator

from agentv.app.authored.reference import in_project, schema_text
from agentv.authoring.fields import decode, json_kinds, kinds
from agentv.authoring.fields.json_kinds import object_of, properties_of, schema_for
from agentv.authoring.fields.schema import AuthoredSuite
from agentv.authoring.fields.spellings import SUITE
from agentv.authoring.json_schema.schema import KINDS
from agentv.authoring.source.nodes import plain
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.model.values.values import Json
from agentv.registry.fields import Alias, Between, Declared, Doc, Nonempty, PromptCode, Text
from doubles.thorough import each_third

ROOT = Path(__file__).parents[4]


@cache
def checker(kind: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_text(kind)))


def read(text: str, path: str = "test.yaml") -> Any:
    report = Report()
    node = read_yaml(path, text.encode(), report).value
    assert node is not None
    assert not report.failed, report.diagnostics
    return plain(node)


def wrong(kind: str, text: str) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in checker(kind).iter_errors(read(text))]


def suite(entries: str) -> str:
    """Return a suite whose only case has these assertions."""
    return f"target: echo\njudge: echo\ntests:\n- id: a\n  input: hi\n  criteria: good\n  assert:\n{entries}"


def keys_of(path: Path) -> set[str]:
    """Return the canonical keys used by a suite's file; none for the expectations next to it."""
    found = re.findall(r"^(\w+):", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {SUITE.older.get(key, key) for key in found} if path.name not in {"expected.yaml", "config.yaml"} else set()


def test_each_schema_is_a_schema() -> None:
    known: dict[str, object] = {}
    for kind in KINDS:
        schema = json.loads(schema_text(kind))
        definitions = schema.pop("$defs", {})
        schema["$defs"] = {name: one for name, one in definitions.items() if known.get(name) != one}  # most are shared
        Draft202012Validator.check_schema(schema)
        known |= definitions


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (found for key, inner in value.items() for found in references(inner) if key != "$ref")
        yield from [value["$ref"]] if isinstance(value.get("$ref"), str) else []
    elif isinstance(value, list):
        yield from (found for inner in value for found in references(inner))


@pytest.mark.parametrize("kind", KINDS)
def test_every_reference_leads_somewhere(kind: str) -> None:
    schema = json.loads(schema_text(kind))
    for reference in set(references(schema)):
        place = schema
        for step in reference.removeprefix("#/").split("/"):
            assert step in place, reference
            place = place[step]


def test_the_committed_schema_is_not_stale() -> None:
    committed = (ROOT / "eval-schema.json").read_text(encoding="utf-8")
    assert committed == schema_text("eval"), "run: agentv schema > eval-schema.json"


UNUSED = {
    "tests/cases/valid/agentv-project/.agentv/targets.yaml",
    "tests/cases/valid/agentv-provider-of-a-file/.agentv/targets.yaml",
    "tests/cases/valid/unused-suite-target-and-judge/.agentv/targets.yaml",
}
"""Files with invalid targets that no case uses, or that a file in `.agentv/providers` makes valid."""

PROJECTS = [*sorted(ROOT.glob("examples/*")), *sorted(ROOT.glob("tests/cases/valid/*"))]
# promptfoo has its own schema for these
PROJECTS = [path for path in PROJECTS if not path.name.startswith("promptfoo")]
FILES = [
    *(("eval", path) for project in PROJECTS for path in sorted(project.rglob("*.yaml")) if "tests" in keys_of(path)),
    *(
        ("targets", path)
        for project in PROJECTS
        for path in sorted(project.rglob(".agentv/targets.yaml"))
        if str(path.relative_to(ROOT)) not in UNUSED
    ),
    *(("template", path) for project in PROJECTS for path in sorted(project.rglob(".agentv/templates/*.yaml"))),
    *(("exam", path) for project in PROJECTS for path in sorted(project.rglob("eval.yml"))),
    *(("meta", path) for project in PROJECTS for path in sorted(project.rglob("meta.yaml"))),
]


@pytest.mark.parametrize(
    ("kind", "path"), [*each_third(FILES, 1)], ids=lambda value: str(value).removeprefix(f"{ROOT}/")
)
def test_right_files_are_right(kind: str, path: Path) -> None:
    assert wrong(kind, path.read_text(encoding="utf-8")) == []


def test_right_files_of_every_kind_are_looked_at() -> None:
    assert {kind for kind, _ in FILES} == set(KINDS)


TOLD = {
    "bad-assertion", "bad-block", "bad-case", "bad-message", "bare-type", "missing-input", "missing-value", "not-yet",
    "torn-conversation", "unknown-assertion", "unknown-key",
}  # fmt: skip
"""Codes of mistakes that a schema can detect; it detects all of `wrong-for-the-schema`."""

BEYOND = {
    "activation-without-skills", "custom-syntax-error", "custom-unknown-parameter", "nearly-an-assertion--colon",
    "not-yet-provider", "not-yet-settings-of-targets", "options-of-measures", "unknown-key--gateway-fault", "unknown-key-in-targets",
    "unknown-provider--beside-misspelt-keys", "unquoted-colon", "workspace-paths",
}  # fmt: skip
"""Folders whose mistake depends on other files, could be a project's type, or is in no single key."""


def test_what_the_loader_refuses_is_wrong() -> None:
    refused = 0
    for path in sorted(ROOT.glob("tests/cases/invalid/*/*.eval.yaml")):
        told = (path.parent / "expected.txt").read_text(encoding="utf-8")
        codes = set(re.findall(rf"^{path.name}:.*: error\[([\w-]+)\]", told, re.MULTILINE))
        told_here = path.parent.name == "wrong-for-the-schema" or codes & TOLD
        if told_here and not codes & {"bad-yaml", "duplicate-key", "unknown-tag"} and path.parent.name not in BEYOND:
            refused += 1
            assert wrong("eval", path.read_text(encoding="utf-8")), path
    assert refused > 80


def test_in_a_project_only_its_own_types_are_right(tmp_path: Path) -> None:
    types = tmp_path / ".agentv" / "assertions"
    types.mkdir(parents=True)
    (types / "is_yaml.py").write_text("raise SystemExit('a schema needs no project code')\n")
    check = Draft202012Validator(json.loads(schema_text("eval", str(tmp_path))))
    assert in_project(str(tmp_path / "evals"))
    entries = {
        "  - is-yaml: 1": True,
        "  - {type: is_yaml}": True,
        "  - not-is-yaml:": True,
        "  - contains: a": True,
        "  - min-words: 5": False,
        "  - {type: min-words}": False,
    }
    assert {entry: check.is_valid(read(suite(entry))) for entry in entries} == entries
    assert "is-yaml" in json.loads(schema_text("eval", str(tmp_path)))["$defs"]["type-names"]["properties"]


def test_the_schema_and_the_loader_know_the_same_kinds() -> None:
    assert {*json_kinds.PLAIN, PromptCode} == decode.BY_ANNOTATION.keys()
    assert {*json_kinds.MARKED, kinds.AsNode} == kinds.MARKED.keys()


@pytest.mark.parametrize("annotation", [complex, bytes, Annotated[set[int], Doc("a set")], tuple[complex, ...]])
def test_what_cannot_be_translated_fails(annotation: Any) -> None:
    with pytest.raises(TypeError, match="no JSON Schema"):
        schema_for(annotation)


def test_a_key_that_nobody_describes_fails() -> None:
    with pytest.raises(TypeError, match="targets"):
        properties_of(AuthoredSuite, {})


@dataclass(frozen=True, slots=True)
class Sample(Declared):
    """Options with one field of each kind."""

    value: Annotated[Text, Nonempty(), Alias(("text", "words")), Doc("what it says")]
    share: Annotated[float | None, Between(0, 1)] = 0.5
    data: Json = None


def test_an_options_class_says_all_that_it_declares() -> None:
    schema = object_of(Sample)
    text = {"type": ["string", "number", "boolean"], "pattern": r"\S"}
    assert schema["properties"]["value"] == {"description": "what it says", **text}
    assert schema["properties"]["words"] == {"description": "older spelling of 'value'", "deprecated": True, **text}
    assert schema["properties"]["share"] == {
        "default": 0.5,
        "anyOf": [{"type": ["number", "null"], "minimum": 0, "maximum": 1}, {"$ref": "#/$defs/placeholder"}],
    }
    assert schema["properties"]["data"] == {}
    check = Draft202012Validator({**schema, "$defs": {"placeholder": json_kinds.PLACEHOLDER_DEF}})
    assert check.is_valid({"words": "a", "x-note": 1, "share": "{{ half }}"})
    assert not check.is_valid({"share": 0.5})
    assert not check.is_valid({"value": "a", "share": 2})


def is_exam(triggering: Any) -> bool:
    cases = [{"name": "a", "inputs": {"x": "y"}, "rubric": "Is kind"}]
    return checker("exam").is_valid({"triggering": triggering, "cases": cases})


@pytest.mark.parametrize(
    "value",
    [
        "queries.json",
        [{"query": "x", "should_trigger": True, "x-why": "near"}],
        {"should_trigger": ["x", 3], "should_not_trigger": None, "runs": 3, "threshold": 0.4, "catalogue": False},
        {"queries": "queries.json", "runs": None, "x-note": 1},
        {"queries": [{"query": "x", "should_trigger": False}], "should_not_trigger": ["y"]},
    ],
)
def test_triggering_that_is_read_is_right(value: Any) -> None:
    assert is_exam(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        {},
        ["x"],
        [{"query": "x", "should_trigger": True, "runs": 3}],
        [{"query": "", "should_trigger": True}],
        [{"query": "x", "should_trigger": "yes"}],
        {"should_trigger": "x"},
        {"should_triger": ["x"]},
        {"should_trigger": ["x"], "runs": 0},
        {"should_trigger": ["x"], "threshold": 2},
        {"should_trigger": ["x"], "threshold": "{{ share }}"},
    ],
)
def test_triggering_that_is_refused_is_wrong(value: Any) -> None:
    assert not is_exam(value)
