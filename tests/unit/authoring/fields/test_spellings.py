"""Every older spelling of SPEC sections 3 and 12 is read like the canonical one. `tests/cases` covers those of
cases."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentv.authoring.fields.spellings import RUN, SUITE
from doubles.loading import suite_of

SUITES: dict[str, Any] = {
    "name": "greetings",
    "targets": "mock:Hello",
    "judge": "mock:yes",
    "input": [{"role": "system", "content": "Be kind."}],
    "assert": [{"icontains": "hello"}],
    "default_test": {"vars": {"a": 1}},
    "threshold": 0.25,
    "run": {"workers": 3},
    "tests": [{"id": "a", "input": "Hello", "assert": [{"contains": "Hello"}]}],
}
RUNS: dict[str, Any] = {
    "workers": 4,
    "repeat": 2,
    "trials": {"count": 2},
    "aggregate": "mean",
    "budget_usd": 5,
    "budget_tokens": 500,
    "cache": False,
    "fail_on_error": True,
    "timeout_s": 9,
    "retry": {"max_retries": 2},
}
OLDER = [
    *(((key,), canonical) for key, canonical in {**SUITE.older, "dataset": "name", "suite": "name"}.items()),
    *(((outer, key), canonical) for outer, inner in SUITE.nested.items() for key, canonical in inner.items()),
    *((("run", key), f"run.{canonical}") for key, canonical in RUN.older.items() if canonical in RUNS),
]
OTHERWISE = {"timeout_ms", "trials", "workspace"}
"""Keys that carry more than their canonical key, or need an agent."""


def facts(folder: Path, path: tuple[str, ...], canonical: str) -> tuple[Any, ...]:
    """Return the facts of a suite in which a canonical key's value is at another path."""
    outer, _, inner = canonical.rpartition(".")
    document = {key: value for key, value in SUITES.items() if key != (outer or inner)}
    place = document
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place[path[-1]] = RUNS[inner] if outer else SUITES[inner]
    suite = suite_of(folder, json.dumps(document))
    (case,) = suite.cases
    targets = [target.name for target in (*suite.targets, suite.judge)]
    types = [entry.type for entry in case.assertions]
    return (suite.name, targets, suite.threshold, suite.run, case.id, case.input, types, case.vars)


@pytest.mark.parametrize(("path", "canonical"), [one for one in OLDER if one[0][-1] not in OTHERWISE], ids=str)
def test_older_keys_of_a_suite(tmp_path: Path, path: tuple[str, ...], canonical: str) -> None:
    canonical_path = tuple(canonical.split("."))
    assert facts(tmp_path / "older", path, canonical) == facts(tmp_path / "new", canonical_path, canonical)
