"""`--regrade`: stored answers, today's assertions, and no target is asked."""

import pytest

AGENT = """
import json, os

def note(line):
    with open("asked.txt", "a") as file:
        file.write(line + "\\n")

def answer(prompt, case_id):
    note(f"target {case_id}")
    return {"output": f"It is {prompt}.", "cost_usd": 0.5, "token_usage": {"input": 1, "output": 2}}

def judge(prompt, case_id):
    note(f"judge {case_id}")
    return {"output": json.dumps({"checks": [{"id": "r1", "satisfied": True}]}), "cost_usd": 0.25}
"""
SUITE = """
target: python:agent.py:answer
judge: python:agent.py:judge
tests:
  - {id: a, input: red, assert: [{contains: red}, is a colour]}
  - {id: b, input: blue, assert: [{contains: blue}]}
"""


@pytest.fixture
def ran(project):
    project.write("agent.py", AGENT)
    project.write("a.eval.yaml", SUITE)
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 0, ended.stderr
    (project.path / "asked.txt").unlink()
    return project


def test_todays_assertions_grade_yesterdays_answers(ran):
    ran.write("a.eval.yaml", SUITE.replace("{contains: blue}", "{contains: green}, is short"))
    ended = ran.run("eval", "a.eval.yaml", "--regrade", "-o", "new")
    assert ended.status == 1, ended.stderr
    assert "grading 2 answers of 20" in ended.stderr
    assert sorted(ran.asked) == ["judge b"]  # what the judge said of the other one is known
    rows = {row["test_id"]: row for row in ran.rows("new")}
    assert [rows[name]["status"] for name in "ab"] == ["passed", "failed"]
    assert (rows["b"]["output"], rows["b"]["reused"], rows["b"]["cost_usd"]) == ("It is blue.", True, 0.5)
    found = ran.summary("new")
    assert (found["cost_usd"], found["token_usage"], found["judge_cost_usd"]) == (None, None, 0.25)


def test_an_interrupted_regrading_goes_on(ran):
    ran.run("eval", "a.eval.yaml", "--regrade", "-o", "new")
    index = ran.path / "new" / "index.jsonl"
    index.write_text(index.read_text().splitlines(keepends=True)[0])
    ended = ran.run("eval", "a.eval.yaml", "--regrade", "-o", "new", "--resume")
    assert ended.status == 0, ended.stderr
    assert sorted(ran.asked) == []
    assert ran.summary("new")["cases"]["passed"] == 2
    assert ran.summary("new")["cost_usd"] is None


def test_a_trial_without_an_answer_is_errored_and_never_asked(ran):
    ran.write("a.eval.yaml", SUITE.replace("input: blue", "input: sky blue"))
    ended = ran.run("eval", "a.eval.yaml", "--regrade", "-o", "new")
    assert ended.status == 3, ended.stderr
    assert "grading 1 answer of 20" in ended.stderr
    assert "1 trial without a stored answer will be errored" in ended.stderr
    assert "no-kept-answer" in ended.stderr
    assert sorted(ran.asked) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--regrade=20200101T000000Z-0000"], "cannot regrade: no run '20200101T000000Z-0000'"),
        (["--regrade", "--rerun=failed"], "--regrade and --rerun conflict: one calls no target, the other does"),
    ],
)
def test_what_cannot_be_regraded_is_refused(ran, words, told):
    ended = ran.run("eval", "a.eval.yaml", *words)
    assert ended.status == 2
    assert told in ended.stderr


def test_thoughts_of_a_stored_answer_are_graded_as_the_target_says_today(project):
    target = "{name: t, provider: mock, response: '<think>maybe 41?</think> 42'THOUGHTS}"
    suite = "target: TARGET\ntests: [{id: a, input: x, assert: [{contains: '41'}]}]\n"
    stripped, kept = (target.replace("THOUGHTS", said) for said in ("", ", thoughts: keep"))
    project.write("a.eval.yaml", suite.replace("TARGET", stripped))
    assert project.run("eval", "a.eval.yaml", "-o", "first").status == 1
    (row,) = project.rows("first")
    assert (row["output"], row["thoughts"]) == ("42", "<think>maybe 41?</think> ")
    project.write("a.eval.yaml", suite.replace("TARGET", kept))
    assert project.run("eval", "a.eval.yaml", "--regrade=first", "-o", "second").status == 0
    assert project.rows("second")[0]["output"] == "<think>maybe 41?</think> 42"
    resumed = project.run("eval", "a.eval.yaml", "--resume", "-o", "first")
    assert resumed.status == 0, resumed.stderr  # what is graded has changed, so the trial is graded again
    project.write("a.eval.yaml", suite.replace("TARGET", stripped))
    assert project.run("eval", "a.eval.yaml", "--regrade=second", "-o", "third").status == 1
