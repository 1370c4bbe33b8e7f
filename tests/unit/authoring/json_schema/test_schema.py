"""The JSON Schema of authored files accepts what the loader accepts and refuses what people mistype."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator

from agentv.app.authored.reference import KINDS, in_project, schema_text
from agentv.app.authored.validate import validate
from agentv.authoring.fields import decode, json_kinds, kinds
from agentv.authoring.fields.json_kinds import object_of, properties_of, schema_for
from agentv.authoring.fields.schema import AuthoredSuite
from agentv.authoring.fields.spellings import SUITE
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
    """A suite whose only case has these assertions."""
    return f"target: echo\njudge: echo\ntests:\n- id: a\n  input: hi\n  criteria: good\n  assert:\n{entries}"


def keys_of(path: Path) -> set[str]:
    """The canonical keys of a suite that a file spells; none for the expectations beside it."""
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
"""Files with targets that are wrong, which no case uses, or that a file in `.agentv/providers` makes right."""

PROJECTS = [*sorted(ROOT.glob("examples/*")), *sorted(ROOT.glob("tests/cases/valid/*"))]
PROJECTS = [path for path in PROJECTS if not path.name.startswith("promptfoo")]  # of which promptfoo has the schema
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


def loader_finds(text: str, directory: Path) -> list[str]:
    file = directory / "test.eval.yaml"
    file.write_text(text)
    return [str(found.message) for found in validate((str(file),), {}) if found.severity == "error"]


CASE = "target: echo\ntests:\n- id: a\n  input: hi\n"
MISTAKES = {
    "a misspelt key of the suite": f"{CASE}  assert: [{{contains: a}}]\ntreshold: 1\n",
    "a misspelt key of a run": f"{CASE}  assert: [{{contains: a}}]\nrun: {{worker: 2}}\n",
    "a misspelt nested key": f"{CASE}  assert: [{{contains: a}}]\n  execution: {{targett: x}}\n",
    "no tests": "target: echo\nname: x\n",
    "no input": "target: echo\ntests:\n- id: a\n  assert: [{contains: a}]\n",
    "no id": "target: echo\ntests:\n- input: hi\n  assert: [{contains: a}]\n",
    "two spellings": f"{CASE}  assert: [{{contains: a}}]\n  assertions: [{{contains: b}}]\n",
    "a block that is none": "target: echo\ntests:\n- id: a\n  input: [{role: user, content: [{type: pdf, value: x}]}]\n"
    "  assert: [{contains: a}]\n",
    "a threshold beyond 1": f"{CASE}  assert: [{{contains: a}}]\n  threshold: 80\n",
    "a key that is not built yet": f"{CASE}  assert: [{{contains: a}}]\ntriggering: [a]\n",
    "options that are not built yet": f"{CASE}  assert: [{{contains: a}}]\ndefault_test: {{options: {{a: 1}}}}\n",
    "an assertion that is a mapping": f"{CASE}  assert: {{contains: a}}\n",
    "a target without provider": "target: {name: x}\ntests:\n- {id: a, input: b, assert: [{contains: c}]}\n",
    "a target without its command": "target: {provider: cli}\ntests:\n- {id: a, input: b, assert: [{contains: c}]}\n",
    "a misspelt key of a target": "target: {provider: cli, command: x, comand: y}\n"
    "tests:\n- {id: a, input: b, assert: [{contains: c}]}\n",
    "a provider that is not built yet": "target: {provider: vscode, model: m}\n"
    "tests:\n- {id: a, input: b, assert: [{contains: c}]}\n",
    "a misspelt type": suite("  - {type: contians, value: a}"),
    "no value": suite("  - type: contains"),
    "an empty value": suite("  - {type: contains, value: ''}"),
    "a text for a list": suite("  - contains-any: a"),
    "a misspelt option": suite("  - {type: regex, value: a, flag: i}"),
    "a negative weight": suite("  - {type: contains, value: a, weight: -1}"),
    "a bare type": suite("  - is-json"),
    "an empty sentence": suite("  - ''"),
    "two types in one entry": suite("  - contains: a\n    regex: b"),
    "a key beside a short type": suite("  - contains: a\n    flags: i"),
    "settings alone": suite("  - weight: 2"),
    "an include with another key": suite("  - include: a\n    weight: 2"),
    "a type that is not built yet": suite("  - {type: meteor, value: a}"),
    "a lone value where none is taken": suite("  - is-refusal: a"),
    "a misspelt option in a set": suite("  - assert-set: [{type: contains, valu: a}]"),
    "an unknown way to match": suite("  - field-accuracy: [{path: a, match: exactly}]"),
}


@pytest.mark.parametrize("text", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_found(text: str, tmp_path: Path) -> None:
    assert wrong("eval", text)
    assert loader_finds(text, tmp_path), "the loader takes it, so the schema must"


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


@pytest.mark.parametrize("messages", [
    "[hi]", "[]", "{}", "[{content: hi}]", "[{role: usr, content: hi}]", "[{role: user}]",
    "[{role: user, content: ''}]", "[{role: user, content: hi, nam: x}]", "[{role: user, content: [{type: text}]}]",
    "[{role: user, content: [{type: pdf, value: a}]}]", "[{role: assistant, tool_calls: search}]",
])  # fmt: skip
def test_mistakes_in_messages_are_found(messages: str, tmp_path: Path) -> None:
    text = f"tests:\n- id: a\n  input: {messages}\n  criteria: b\n"
    assert wrong("eval", text)
    assert loader_finds(text, tmp_path)


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
    """Options with one of everything."""

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
    assert not check.is_valid({"value": "a", "text": "b"})
    assert not check.is_valid({"value": "a", "share": 2})
