"""`--rerun` repeats what did not pass, and nothing else; `--fail-fast` stops a run at the first failure."""

import json

import pytest

AGENT = """
import os

def answer(prompt, case_id):
    with open("asked.txt", "a") as file:
        file.write(case_id + "\\n")
    if case_id == "breaks" and not os.path.exists("mended"):
        raise ValueError("no")
    return "better" if os.path.exists("mended") else "good" if case_id == "good" else "bad"
"""
SUITE = """
target: python:agent.py:answer
tests:
  - {id: good, input: a, assert: [{contains-any: [good, better]}]}
  - {id: fails, input: b, assert: [{contains-any: [good, better]}]}
  - {id: breaks, input: c, assert: [{contains-any: [good, better, bad]}]}
"""


@pytest.fixture
def ran(project):
    project.write("agent.py", AGENT)
    project.write("a.eval.yaml", SUITE)
    ended = project.run("eval", "a.eval.yaml", "--out", "out")
    assert ended.status == 3, ended.stderr
    (project.path / "asked.txt").unlink()
    return project


def statuses(project) -> dict[str, str]:
    return {row["test_id"]: row["status"] for row in project.rows("out")}


def history(project) -> list[str]:
    lines = (project.path / "out" / "history.jsonl").read_text().splitlines()
    return [json.loads(line)["test_id"] for line in lines]


@pytest.mark.parametrize(("what", "one"), [("failed", "fails"), ("errored", "breaks")])
def test_what_ended_so_is_done_anew_and_its_old_row_is_history(ran, what, one):
    ended = ran.run("eval", "a.eval.yaml", "--out", "out", f"--rerun={what}")
    assert ended.status == 3, ended.stderr  # nothing is mended, so it ends as it did
    assert sorted(ran.asked) == [one]
    assert "resuming: 2 trials complete, 1 to run" in ended.stderr
    assert history(ran) == [one]
    assert statuses(ran) == {"good": "passed", "fails": "failed", "breaks": "errored"}


def test_the_newest_row_counts(ran):
    ran.write("mended", "")
    assert ran.run("eval", "a.eval.yaml", "--out", "out", "--rerun", "failed").status == 3
    assert ran.run("eval", "a.eval.yaml", "--out", "out", "--rerun", "errored").status == 0
    assert sorted(ran.asked) == ["breaks", "fails"]
    assert statuses(ran) == dict.fromkeys(("good", "fails", "breaks"), "passed")
    assert len(ran.rows("out")) == 3
    summary = ran.summary()
    assert summary["cases"] == {"total": 3, "passed": 3, "failed": 0, "errored": 0, "skipped": 0, "shown": 0}
    assert ran.run("eval", "a.eval.yaml", "--out", "out", "--resume").status == 0
