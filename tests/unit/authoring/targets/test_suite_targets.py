"""What was given in Python, flags, the eval file, the project: whose word counts (SPEC sections 2 and 12)."""

from contextlib import chdir

import pytest

from agentv.model.suite.suite import TargetSpec
from agentv.targets.mock import Echo
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
        ("target:\n", {}, ["one"]),
        ("targets: []\n", {}, ["one"]),
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
        ("", {"judge": "one", "given_judge": GIVEN}, ["given", None, "two"]),
        ("", {"given_judge": {"name": "j", "provider": "mock", "response": "yes"}}, ["j", None, "two"]),
    ],
)
def test_who_judges_a_suite(tmp_path, head, request_, judges):
    assert asked(tmp_path, head + CASE, **request_)[1] == judges


def test_paths_of_the_command_line_begin_in_the_working_directory(tmp_path):
    repository(
        tmp_path,
        {"agent.py": "def f(): ...", "evals/agent.py": "def f(): ...", "suite.eval.yaml": "target: echo\n" + CASE},
    )
    with chdir(tmp_path / "evals"):
        suites, found = outcome(tmp_path / "suite.eval.yaml", targets=("python:agent.py:f",))
    assert not found
    assert suites[0].targets[0].settings.function.path == str(tmp_path / "evals/agent.py")


@pytest.mark.parametrize("asked", [{"targets": ("python:{}:f",)}, {"judge": "python:{}:f"}])
def test_an_absolute_path_of_the_command_line_is_one_of_the_system(tmp_path, asked):
    (tmp_path / "agents").mkdir()
    agent = tmp_path / "agents/agent.py"
    agent.write_text("def f(prompt): return prompt\n", encoding="utf-8")
    suite = repository(tmp_path / "project", {"suite.eval.yaml": "target: echo\n" + CASE}) / "suite.eval.yaml"
    given = {
        key: tuple(one.format(agent) for one in value) if isinstance(value, tuple) else value.format(agent)
        for key, value in asked.items()
    }
    suites, found = outcome(suite, **given)
    assert not found
    target = suites[0].forced_judge or suites[0].targets[0]
    assert target.settings.function.path == str(agent)


def test_in_an_eval_file_a_slash_begins_at_the_root_of_the_repository_alone(tmp_path):
    agent = tmp_path / "agent.py"
    agent.write_text("def f(prompt): return prompt\n", encoding="utf-8")
    assert found_in(tmp_path / "project", f"target: python:{agent}:f\n" + CASE) == [("missing-file", 1)]
