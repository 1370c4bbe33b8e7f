"""`--until decided`: cases are sampled until their pass rate is decided, and no longer."""

from __future__ import annotations

import json
from collections import Counter

import pytest

AGENT = """
import os

def answer(prompt, case_id):
    with open("asked.txt", "a") as file:
        file.write(case_id + "\\n")
    if os.path.exists("stop") and case_id == "never":
        os.kill(os.getpid(), 9)
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
    project.write("agent.py", AGENT)
    project.write("a.eval.yaml", SUITE)
    return project


def ran(project, *words: str):
    return project.run("eval", "a.eval.yaml", "--out", "out", *words)


def asked(project) -> Counter[str]:
    path = project.path / "asked.txt"
    return Counter(path.read_text().split() if path.exists() else [])


def summary(project) -> dict:
    return json.loads((project.path / "out" / "summary.json").read_text())


def test_no_more_is_asked_than_decides_and_the_last_row_says_why(suite):
    ended = ran(suite, "--repeat", "30", "--until", "decided")
    assert ended.status == 1, ended.stderr
    assert asked(suite) == {"always": 16, "never": 3}
    assert "decided 2 of 2 cases with 19 of 60 samples, each wrongly with a chance of 5.0% at most" in ended.stderr
    rows = suite.rows("out")
    assert all((row["repeat"], row["alpha"]) == (30, 0.05) for row in rows)
    told = {row["test_id"]: (row["sample"], row["stopped"]) for row in rows if "stopped" in row}
    assert told["always"] == (16, {"why": "above", "samples": 16, "passed": 16, "low": 0.807104, "high": 1.0})
    assert (told["never"][0], told["never"][1]["why"]) == (3, "below")
    assert list(rows[-1])[-2:] == ["alpha", "stopped"]
    found = summary(suite)
    assert found["cases"] == {"total": 2, "passed": 1, "failed": 1, "errored": 0, "skipped": 0}
    assert found["trials"] == {"total": 19, "passed": 16, "failed": 3, "errored": 0, "skipped": 0}
    (listed,) = found["early_stops"].pop("by_case")
    counted = {"alpha": 0.05, "decided": 2, "undecided": 0, "samples": 19, "spared": 41, "omitted": 0}
    assert found["early_stops"] == counted
    assert (listed["test_id"], listed["status"], listed["stopped"]) == ("never", "failed", told["never"][1])
    assert (found["mean_score"], "samples" in found, "mean score" in ended.stderr) == (None, False, False)
    bounds = "anytime-valid bounds of the rate: 0.0% to 67.6%, each wrong with a chance of 5.0% at most"
    assert f"SAMPLES never: 0 of 3 passed, the rate is below the threshold; {bounds}\n" in ended.stderr


def test_a_larger_alpha_decides_sooner_and_a_run_keeps_it(suite):
    ran(suite, "--repeat", "30", "--until", "decided", "--alpha", "0.2")
    assert asked(suite) == {"always": 9, "never": 2}
    assert "going on: 11 trials stand" in ran(suite, "--resume").stderr
    assert asked(suite).total() == 11


def test_a_killed_run_goes_on_with_the_samples_that_it_has(suite):
    suite.write("stop", "")
    suite.write("a.eval.yaml", SUITE.replace("target", "run: {repeat: {max: 30, until: decided}, workers: 1}\ntarget"))
    assert ran(suite).status == -9
    before = asked(suite)
    assert before == {"always": 16, "never": 1}
    (suite.path / "stop").unlink()
    ended = ran(suite, "--resume")
    assert ended.status == 1, ended.stderr
    assert "up to" in ended.stderr
    assert asked(suite)["always"] == 16
    assert [row["sample"] for row in suite.rows("out") if row["test_id"] == "never"] == [1, 2, 3]
    assert summary(suite)["early_stops"]["spared"] == 41
    ended = ran(suite, "--resume")
    assert "going on: 19 trials stand, up to 0 are asked" in ended.stderr
    assert (ended.status, asked(suite)["never"]) == (1, 4)


def test_a_run_that_decided_early_is_a_whole_one(suite):
    ended = ran(suite, "--repeat", "30", "--until", "decided", "--record", "all.jsonl")
    assert "recorded 19 calls" in ended.stderr
    again = suite.run(
        "eval", "a.eval.yaml", "--out", "b", "--repeat", "30", "--until", "decided", "--replay", "all.jsonl"
    )
    assert again.status == 1, again.stderr
    assert asked(suite).total() == 19


def test_a_budget_and_a_decision_go_together(suite):
    suite.write("agent.py", AGENT.replace('"yes" if', '{"output": "y", "cost_usd": 1} if 0 else "yes" if'))
    ended = ran(suite, "--repeat", "30", "--until", "decided", "--budget-usd", "1", "--list")
    assert "2 cases, up to 60 trials" in ended.stderr


@pytest.mark.parametrize(
    ("words", "more", "said"),
    [
        (("--until", "decided"), "", "--until decided needs several samples of a case"),
        (("--alpha", "0.1"), "", "--alpha says how surely samples decide a case"),
        (("--until", "decided", "--repeat", "9", "--alpha", "0.7"), "", "--alpha"),
        (("--until", "certain", "--repeat", "9"), "", "certain"),
        (("--until", "decided", "--repeat", "9"), "run: {aggregate: pass_any}\n", "says aggregate: pass_any"),
    ],
)
def test_what_contradicts_it_is_a_wrong_command(suite, words, more, said):
    suite.write("a.eval.yaml", more + SUITE)
    ended = ran(suite, *words)
    assert (ended.status, asked(suite)) == (2, {})
    assert said in ended.stderr


def test_conversations_go_on_sample_by_sample(suite):
    talk = SUITE.replace("input: a}", "input: a, conversation_id: k}").replace(
        "input: b}", "input: b, conversation_id: k}"
    )
    suite.write("a.eval.yaml", talk)
    ended = ran(suite, "--until", "decided", "--repeat", "9")
    assert ended.status == 2
    assert "'never' of the suite 'a' goes on with a conversation, sample by sample" in ended.stderr


def test_failed_samples_alone_are_not_made_anew(suite):
    ran(suite, "--until", "decided", "--repeat", "9")
    ended = ran(suite, "--until", "decided", "--repeat", "9", "--rerun=failed")
    assert ended.status == 2
    assert "--rerun=failed makes only failed samples anew" in ended.stderr
