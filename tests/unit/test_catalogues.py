"""Every name in both catalogues, in everything that reads them: data rows, `targets`, pages, schema, completion."""

import json
import re
from pathlib import Path

import pytest

from agentv.app.registries import registries
from agentv.app.targets import TargetsRequest, list_targets
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.json_schema.schema import Vocabulary, full_schema
from agentv.extensions.editor.answers import complete
from agentv.extensions.editor.index import kind_of
from agentv.extensions.editor.project import Project
from agentv.reports.targets import render_targets
from doubles.loading import codes_and_lines

PAGES = Path(__file__).parents[2] / "docs" / "reference"
KNOWN = registries()
PROVIDERS = {name: KNOWN.providers.find(name) for name in KNOWN.providers}
TYPES = {name: KNOWN.assertions.find(name) for name in KNOWN.assertions}


def from_data(folder: Path, entry: object) -> set[str]:
    """Return the codes of the diagnostics for an assertion in a data row."""
    row = json.dumps({"id": "a", "input": "x", "criteria": "y", "assert": [entry]})
    suite = "target: echo\njudge: mock:yes\ntests: rows.jsonl\n"
    return {code for code, _ in codes_and_lines(folder, suite, {"rows.jsonl": row}, for_run=False)}


def offered(folder: Path, text: str) -> set[str]:
    """Return an editor's completions at the end of a text."""
    path = str(folder / "a.eval.yaml")
    kind = kind_of(path, text)
    lines = text.split("\n")
    place = (len(lines) - 1, len(lines[-1]))
    return {one.label for one in complete(lines, place, kind, Project.around(path, {}), None).items}


def described(page: str, family: str) -> set[str]:
    return set(re.findall(rf"<!-- generated: {family} ([\w:-]+) -->", (PAGES / page).read_text(encoding="utf-8")))


def test_rows_of_data_may_name_what_calls_nothing_or_a_server_of_its_own(tmp_path):
    wrong = []
    for name, provider in PROVIDERS.items():
        refused = "untrusted-data" in from_data(
            tmp_path, {"type": "llm-rubric", "value": "is polite", "judge": f"{name}:x"}
        )
        spelled = {"type": "llm-rubric", "value": "is polite", "judge": {"provider": name}}
        if refused != (provider.settings.calls in ("program", "any-server")):
            wrong.append(name)
        if provider.settings.calls == "nothing" and "untrusted-data" in from_data(tmp_path, spelled):
            wrong.append(f"settings of {name}")
    assert wrong == []


def test_what_limits_calls_to_a_server_says_that_it_calls_one():
    settings = {name: provider.settings for name, provider in PROVIDERS.items()}
    calling = {name for name, one in settings.items() if one.endpoint is not PROVIDERS["echo"].settings.endpoint}
    assert calling == {name for name, one in settings.items() if one.calls in ("server", "any-server")}


def test_rows_of_data_may_use_every_type_that_runs_no_code(tmp_path):
    refused = {name for name in TYPES if "untrusted-data" in from_data(tmp_path, {"type": name})}
    unknown = {name for name in TYPES if "unknown-type" in from_data(tmp_path, {"type": name})}
    assert (refused, unknown) == ({name for name, one in TYPES.items() if one.options.runs_code}, set())


@pytest.fixture(scope="module")
def variables() -> dict[str, str]:
    """Return a variable that can provide the key, for each provider that needs one."""
    shapes = {name: shape_of(provider.settings) for name, provider in PROVIDERS.items()}
    keys = {name: shape.from_environment.get("api_key") for name, shape in shapes.items()}
    return {name: key.names[0] for name, key in keys.items() if key is not None and key.required}


def test_targets_lists_every_provider_with_its_key_and_an_example(tmp_path, monkeypatch, variables):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for name, variable in variables.items():
        request = TargetsRequest((), check=False, timeout_s=1, process_env={variable: "set"})
        listing = list_targets(request, lambda models, agents: None).listing
        shown = render_targets(listing, here=str(tmp_path), width=200)
        (one,) = (one for one in (*listing.models, *listing.others) if one.name == name)
        if "No key is set" in shown or variable not in [key.found for key in one.keys] or not one.example:
            wrong.append(name)
    assert wrong == []
    assert {one.name for one in (*listing.models, *listing.others)} >= PROVIDERS.keys()
    assert {one.name for one in listing.models} == {name for name, one in PROVIDERS.items() if one.of_models}


def test_an_example_is_more_than_a_name_where_a_name_alone_is_no_target():
    bare = {name: provider.shown for name, provider in PROVIDERS.items() if not provider.bare}
    assert [name for name, shown in bare.items() if PROVIDERS[name].settings.short and ":" not in shown] == []


def test_pages_and_the_schema_have_every_name():
    assert described("targets.md", "target") == {*PROVIDERS, "keys"}, "add a heading to docs/reference/targets.md"
    assert described("assertions.md", "assertion") == {*TYPES, "types", "keys"}, (
        "add one to docs/reference/assertions.md"
    )
    names = set(full_schema("eval", Vocabulary(KNOWN.assertions, KNOWN.providers))["$defs"])
    assert {f"provider.{name}" for name in PROVIDERS} <= names
    assert {f"type.{name}" for name in TYPES} <= names


def test_editors_offer_every_name(tmp_path):
    assert PROVIDERS.keys() <= offered(tmp_path, "target:\n  provider: ")
    shown = TYPES.keys()
    assert shown <= offered(tmp_path, "target: echo\ntests:\n  - id: a\n    input: x\n    assert:\n      - type: ")
