"""What was given in Python, flags, the eval file, the project: whose word counts (SPEC sections 2 and 12)."""

from __future__ import annotations

from contextlib import chdir

import pytest

from agentv.model.suite import TargetSpec
from agentv.targets.echo import Echo
from doubles.loading import found_in, outcome, repository

CASE = "tests:\n  - {id: a, input: x, assert: [{contains: x}]}\n"
BOOK = "targets: [{name: one, provider: echo}, {name: two, provider: echo}]\ndefaults: {target: one, judge: two}\n"
GIVEN = TargetSpec("given", "echo", Echo())


def asked(folder, text: str, **request):
    path = repository(folder, {"evals/suite.eval.yaml": text, ".agentv/targets.yaml": BOOK}) / "evals/suite.eval.yaml"
    suites, found = outcome(path, **request)
    assert suites, found
    (suite,) = suites
    judges = [spec and spec.name for spec in (suite.forced_judge, suite.judge, suite.default_judge)]
    return [target.name for target in suite.targets], judges


@pytest.mark.parametrize(
    ("head", "request_", "names"),
    [
        ("", {}, ["one"]),
        ("target:\n", {}, ["one"]),
        ("targets: []\n", {}, ["one"]),
        ("target: two\n", {}, ["two"]),
        ("targets: [two, echo]\n", {}, ["two", "echo"]),
        ("target: two\n", {"targets": ("one", "mock:x")}, ["one", "mock:x"]),
        ("target: two\n", {"targets": ("one",), "given_target": GIVEN}, ["given"]),
        ("target: two\n", {"given_target": {"provider": "mock", "response": "{{ x }}"}}, ["mock"]),
    ],
)
def test_whom_a_suite_asks(tmp_path, head, request_, names):
    assert asked(tmp_path, head + CASE, **request_)[0] == names


@pytest.mark.parametrize(
    ("head", "request_", "judges"),
    [
        ("", {}, [None, None, "two"]),
        ("judge: one\n", {}, [None, "one", "two"]),
        ("judge: one\n", {"judge": "mock:yes"}, ["mock:yes", "one", "two"]),
        ("", {"judge": "one", "given_judge": GIVEN}, ["given", None, "two"]),
        ("", {"given_judge": {"name": "j", "provider": "mock", "response": "yes"}}, ["j", None, "two"]),
    ],
)
def test_who_judges_a_suite(tmp_path, head, request_, judges):
    assert asked(tmp_path, head + CASE, **request_)[1] == judges


def test_paths_of_the_command_line_begin_in_the_working_directory(tmp_path):
    repository(tmp_path, {"agent.py": "", "evals/agent.py": "", "suite.eval.yaml": "target: echo\n" + CASE})
    with chdir(tmp_path / "evals"):
        suites, found = outcome(tmp_path / "suite.eval.yaml", targets=("python:agent.py:f",))
    assert not found
    assert suites[0].targets[0].settings.function.path == str(tmp_path / "evals/agent.py")


def test_a_suite_whose_cases_all_name_a_target_needs_none(tmp_path):
    text = "tests:\n  - {id: a, input: x, execution: {target: echo}, assert: [{contains: x}]}\n"
    assert found_in(tmp_path / "a", text) == []
    assert found_in(tmp_path / "b", text + CASE.partition("\n")[2]) != []
    both = text + "  - {id: b, input: x, assert: [{contains: x}]}\n"
    assert found_in(tmp_path / "c", both) == [("no-target", 1)]
    assert found_in(tmp_path / "d", both, for_run=False) == []


def test_a_mistake_elsewhere_does_not_hide_that_no_target_is_named(tmp_path):
    text = "tests:\n  - {id: a, input: x, assert: [{contains: x}], colour: blue}\n"
    assert found_in(tmp_path, text) == [("no-target", 1), ("unknown-key", 2)]


def test_a_target_that_is_wrong_is_not_also_said_to_be_missing(tmp_path):
    assert found_in(tmp_path, "target: nobody\n" + CASE) == [("unknown-target", 1)]
