from __future__ import annotations

from agentv.app.registries import registries
from agentv.authoring.loading.load import load_entry
from agentv.extensions.mutate.operators.work import named_work
from agentv.model.suite.suite import Case
from agentv.model.suite.workspace import WorkspaceSpec


def named(*lines, **keys):
    entries = [load_entry(line, ".", registries(), {})[0] for line in lines]
    return named_work(Case(id="case", input=(), assertions=(), **keys), entries)


def test_what_assertions_protected_files_and_criteria_name():
    found = named(
        {"type": "file-contains", "path": "src/*.py", "value": "x"},
        {"type": "file-changes", "deny": ["tests/**"]},
        {"command": ["pytest", "-q"]},
        workspace=WorkspaceSpec(protected=("ci/**",)),
    )
    assert (found.read, found.kept) == (("src/*.py",), ("ci/**", "tests/**"))
    assert (found.runs, found.runs_tests, found.names_debugging) == (True, True, False)
    assert [found.names(path) for path in ("src/a.py", "tests/x/y.py", "docs/a.md")] == [True, True, False]
    assert not named({"command": "make lint"}).runs_tests
    assert not named({"contains": "x"}).runs
