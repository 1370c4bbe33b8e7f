"""`--last-failed`, and the commands that a run prints for its failures: pasted, they run just those."""

import json
import re
import shlex

import pytest

SUITE = """\
name: two
targets:
  - {name: good, provider: mock, response: hello}
  - {name: bad, provider: mock, response: bye}
tests:
  - {id: a, input: hi, assert: [{contains: hello}]}
  - {id: "b [x=1] it's *", input: hi, assert: [{contains: hello}]}
  - {id: "b [x=1] it's long", input: hi, assert: [{contains: e}]}
  - {id: c, input: hi, assert: [{contains: bye}]}
"""


@pytest.fixture
def failing(project):
    project.write("evals/my suite.eval.yaml", SUITE)
    return project


def ran(project):
    """The trials of the last run."""
    return sorted((row["test_id"], row["target"], row["status"]) for row in project.rows())


FAILED = [("a", "bad", "failed"), ("b [x=1] it's *", "bad", "failed"), ("c", "good", "failed")]


def test_each_command_runs_the_failures_of_its_group_and_no_others(failing):
    shown = failing.run("eval", "evals").stderr
    commands = re.findall(r"^ *run again: agentv (.*)$", shown, re.MULTILINE)
    assert len(commands) == 2
    seen = []
    for command in commands:
        assert failing.run(*shlex.split(command)).status == 1
        seen += ran(failing)
    assert sorted(seen) == FAILED


def test_the_last_command_runs_what_did_not_pass_until_all_of_it_passes(failing):
    shown = failing.run("eval", "evals").stderr
    (again,) = re.findall(r"^run all of them again: agentv (.*)$", shown, re.MULTILINE)
    assert "--last-failed" in again
    part = failing.run(*shlex.split(again))
    assert (part.status, ran(failing)) == (1, FAILED)
    assert "--last-failed selected 3 of 4 cases (3 of 8 trials); the rest did not run" in part.stderr
    # a run of some of them in between says nothing of the others
    assert failing.run("eval", "evals", "--filter", "c", "--target", "bad").status == 0
    failing.write("evals/my suite.eval.yaml", SUITE.replace("response: bye", "response: hello bye"))
    mended = failing.run("eval", "evals", "--lf", "--json")
    found = (mended.status, ran(failing))
    assert found == (1, [("a", "bad", "passed"), ("b [x=1] it's *", "bad", "passed"), FAILED[2]])
    summary = json.loads(mended.stdout)
    assert summary["partial"] == {"cases": 3, "of": 4, "why": ["last-failed"], "trials": 3, "of_trials": 8}
    assert [group["cases"] for group in summary["failure_groups"]] == [1]
    failing.run("eval", "evals", "--lf")
    assert ran(failing) == [FAILED[2]]


def test_where_nothing_failed_all_cases_run_and_it_says_so(failing):
    first = failing.run("eval", "evals", "--lf")
    assert "note: --last-failed: there is no earlier run of these suites; running all 4 cases" in first.stderr
    failing.write(
        "evals/my suite.eval.yaml",
        SUITE.replace("response: bye", "response: hello bye").replace("{contains: bye}", "{contains: e}"),
    )
    failing.run("eval", "evals")
    whole = failing.run("eval", "evals", "--lf")
    assert "note: --last-failed: no case failed in the last run; running all 4 cases" in whole.stderr
    assert (whole.status, len(ran(failing)), "selected" in whole.stderr) == (0, 8, False)


def test_an_interrupted_rerun_is_resumed_with_the_same_cases(failing):
    failing.run("eval", "evals")
    run = failing.run("eval", "evals", "--lf", "--max-errors", "1")
    resumed = failing.run("eval", "evals", "--resume")
    assert (run.status, resumed.status, len(ran(failing))) == (1, 1, 3)
    assert "selected 3 of 4 cases (3 of 8 trials)" in resumed.stderr


def test_an_exam_of_the_failed_cases_alone_is_no_evidence(project):
    project.write("prompts/p/prompt.md", "Say {{ word }}")
    project.write("prompts/p/meta.yaml", "description: says a word\nstatus: draft\nowner: me\n")
    exam = "defaults: {target: echo}\ncases:\n" + "".join(
        f"  - {{name: {name}, inputs: {{word: {name}}}, assert: [{{contains: {word}}}]}}\n"
        for name, word in (("one", "one"), ("two", "TWO"))
    )
    project.write("prompts/p/eval.yml", exam)
    assert project.run("prompt", "eval", "p").status == 1
    project.write("prompts/p/eval.yml", exam.replace("TWO", "two"))
    part = project.run("prompt", "eval", "p", "--last-failed")
    assert (part.status, "--last-failed" in part.stderr) == (0, True)
    row = json.loads((project.path / "prompts/p/.eval.jsonl").read_text().splitlines()[-1])
    assert row["partial"]
    assert project.run("prompt", "promote", "p").status == 1
