"""`--until decided` samples cases only until their pass rate is decided."""

from collections import Counter

import pytest

AGENT = """
import os

def answer(prompt, case_id):
    with open("asked.txt", "a") as file:
        file.write(case_id + "\\n")
    if os.path.exists("stop") and case_id == "never":
        os.kill(os.getppid(), 9)  # the run; this is its worker
    return "yes" if case_id == "always" else "no"
"""
SUITE = """
target: python:agent.py:answer
assert: [{contains: yes}]
tests:
  - {id: always, input: a}
  - {id: never, input: b}
"""


@pytest.fixture
def suite(project):
    return project.write_files({"agent.py": AGENT, "a.eval.yaml": SUITE})


def ran(project, *words: str, **how):
    return project.run("eval", "a.eval.yaml", "--out", "out", *words, **how)


def test_no_more_is_asked_than_decides_and_the_last_row_says_why(suite):
    ended = ran(suite, "--repeat", "30", "--until", "decided", status=1)
    assert Counter(suite.asked) == {"always": 16, "never": 3}
    assert "decided 2 of 2 cases with 19 of 60 samples; of all 2 cases, at most 5.0% are expected" in ended.stderr
    rows = suite.rows("out")
    assert all((row["repeat"], row["alpha"]) == (30, 0.05) for row in rows)
    told = {row["test_id"]: (row["sample"], row["stopped"]) for row in rows if "stopped" in row}
    assert told["always"] == (16, {"why": "above", "samples": 16, "passed": 16, "low": 0.807104, "high": 1.0})
    assert (told["never"][0], told["never"][1]["why"]) == (3, "below")
    assert [key for key in rows[-1] if key in ("stopped", "alpha")] == ["alpha", "stopped"]
    found = suite.summary()
    assert found["cases"] == {"total": 2, "passed": 1, "failed": 1, "errored": 0, "skipped": 0, "shown": 0}
    assert found["trials"] == {"total": 19, "passed": 16, "failed": 3, "errored": 0, "skipped": 0, "shown": 0}
    (listed,) = found["early_stops"].pop("by_case")
    counted = {"alpha": 0.05, "decided": 2, "undecided": 0, "samples": 19, "spared": 41, "omitted": 0}
    counted |= {"cases": 2, "confirmed": 2, "by_gate": 0}
    assert found["early_stops"] == counted
    assert (listed["test_id"], listed["status"], listed["stopped"]) == ("never", "failed", told["never"][1])
    assert (found["mean_score"], "samples" in found, "mean score" in ended.stderr) == (None, False, False)
    bounds = "anytime-valid bounds of the rate: 0.0% to 67.6%, error rate at most 5.0% each"
    assert f"SAMPLES never: 0 of 3 passed, the rate is below the threshold; {bounds}\n" in ended.stderr


def test_a_killed_run_goes_on_with_the_samples_that_it_has(suite):
    suite.write("stop", "")
    suite.write("a.eval.yaml", SUITE.replace("target", "run: {repeat: {max: 30, until: decided}, workers: 1}\ntarget"))
    assert ran(suite).status == -9
    before = Counter(suite.asked)
    assert before == {"always": 16, "never": 1}
    (suite.path / "stop").unlink()
    ran(suite, "--resume", status=1, says="up to")
    assert Counter(suite.asked)["always"] == 16
    assert [row["sample"] for row in suite.rows("out") if row["test_id"] == "never"] == [1, 2, 3]
    assert suite.summary()["early_stops"]["spared"] == 41
    ended = ran(suite, "--resume", says="resuming: 19 trials complete, up to 0 to run")
    assert (ended.status, Counter(suite.asked)["never"]) == (1, 4)


def test_a_run_that_decided_early_is_a_whole_one(suite):
    ran(suite, "--repeat", "30", "--until", "decided", "--record", "all.jsonl", says="recorded 19 calls")
    suite.run(
        "eval", "a.eval.yaml", "--out", "b", "--repeat", "30", "--until", "decided", "--replay", "all.jsonl", status=1
    )
    assert Counter(suite.asked).total() == 19
