"""Every older spelling of SPEC sections 3, 4 and 7 is read, and means the canonical one."""

import json
from pathlib import Path

import pytest

from doubles.loading import suite_of

SECTION_3 = {
    "name": ["dataset", "suite"],
    "targets": ["target", "execution.target", "execution.targets", "providers", "provider"],
    "input": ["input_messages"],
    "assert": [
        "assertions",
        "evaluators",
        "execution.evaluators",
        "execution.assert",
        "execution.assertions",
        "evaluator",
    ],
    "default_test": ["defaultTest"],
    "threshold": ["execution.threshold"],
    "run": ["evaluate_options", "evaluateOptions"],
    "tests": ["evalcases", "eval_cases", "cases"],
}
"""The table of SPEC section 3: canonical key → its older spellings."""


SUITES = {
    "name": "greetings",
    "targets": "mock:Hello",
    "input": [{"role": "system", "content": "Be kind."}],
    "assert": [{"icontains": "hello"}],
    "default_test": {"vars": {"a": 1}},
    "threshold": 0.25,
    "run": {"workers": 3},
    "tests": [{"id": "a", "input": "Hello", "assert": [{"contains": "Hello"}]}],
}


def spelled(document: dict, canonical: str, older: str) -> str:
    """The document as YAML, one of its keys in an older spelling."""
    renamed = {key: value for key, value in document.items() if key != canonical}
    outer, dot, inner = older.partition(".")
    renamed |= {outer: {inner: document[canonical]}} if dot else {older: document[canonical]}
    return json.dumps(renamed)


@pytest.mark.parametrize(("canonical", "older"), [(key, one) for key, older in SECTION_3.items() for one in older])
def test_older_keys_of_a_suite(tmp_path: Path, canonical: str, older: str):
    found = suite_of(tmp_path / "older", spelled(SUITES, canonical, older))
    wanted = suite_of(tmp_path / "canonical", spelled(SUITES, canonical, canonical))
    assert facts(found) == facts(wanted)


def facts(suite):
    (case,) = suite.cases
    targets = [target.name for target in suite.targets]
    types = [entry.type for entry in case.assertions]
    return (suite.name, targets, suite.threshold, suite.run, case.id, case.input, types, case.vars)


@pytest.mark.parametrize(
    ("key", "value", "field", "read"),
    [
        ("workers", 3, "workers", 3),
        ("max_concurrency", 3, "workers", 3),
        ("repeat", 2, "repeat", 2),
        ("trials", {"count": 2}, "repeat", 2),
        ("timeout_seconds", 9, "timeout_s", 9.0),
        ("fail_on_error", True, "max_errors", 1),
        ("fail_on_error", False, "max_errors", None),
        ("cache", False, "workers", None),
    ],
)
@pytest.mark.parametrize("home", ["run", "evaluate_options", "evaluateOptions", "execution"])
def test_older_keys_of_a_run(tmp_path: Path, home: str, key: str, value: object, field: str, read: object):

    document = {**SUITES, home: {key: value}}
    if home != "run":
        del document["run"]
    suite = suite_of(tmp_path, json.dumps(document))
    assert getattr(suite.run, field) == read


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", "agent"),
        ("label", "agent"),
        ("judge_target", "mock:yes"),
        ("timeout_seconds", 9),
        ("command_template", "cat"),
    ],
)
def test_older_keys_of_a_target(tmp_path: Path, key: str, value: object):
    settings = {"name": "agent", "provider": "cli", "command": "cat", "judge": "mock:no", "timeout_s": 4}
    meant = {"id": "name", "label": "name", "judge_target": "judge", "timeout_seconds": "timeout_s"}
    del settings[meant.get(key, "command")]
    settings[key] = value
    document = {**SUITES, "targets": settings}

    (target,) = suite_of(tmp_path, json.dumps(document)).targets
    shown = (target.name, target.judge, target.timeout_s, str(target.settings.command))
    wanted = {"judge_target": ("agent", "mock:yes", 4.0, "cat"), "timeout_seconds": ("agent", "mock:no", 9.0, "cat")}
    assert shown == wanted.get(key, ("agent", "mock:no", 4.0, "cat"))
