"""`--against RUN --until decided` draws cases at random until their comparison with an earlier run is decided."""

import json

import pytest

AGENT = """
import os

def answer(prompt, case_id):
    with open("asked.txt", "a") as file:
        file.write(case_id + "\\n")
    asked = len(open("asked.txt").read().split())
    if os.path.exists("stop") and asked == 20:
        os.remove("stop")
        os.kill(os.getppid(), 9)  # the run; this is its worker
    if os.path.exists("broken"):
        raise OSError("no answer")
    number = int(case_id[1:])
    return "yes" if number % 10 >= int(open("bad.txt").read()) else "no"
"""
SUITE = """
name: orders
target: python:agent.py:answer
assert: [{contains: yes}]
tests: cases.jsonl
"""
CASES = 120


@pytest.fixture
def suite(project):
    project.write_files({"agent.py": AGENT, "a.eval.yaml": SUITE})
    lines = (json.dumps({"id": f"c{number}", "input": f"question {number}"}) for number in range(CASES))
    project.write_files({"cases.jsonl": "\n".join(lines), "bad.txt": "2"})
    assert project.run("eval", "a.eval.yaml", "--out", "base").status == 1
    (project.path / "asked.txt").unlink()
    return project


def ran(project, out: str, *words: str, **how):
    return project.run("eval", "a.eval.yaml", "--out", out, "--against", "base", "--until", "decided", *words, **how)


def test_a_run_that_is_worse_ends_soon_and_fails_and_its_rows_say_what_was_not_drawn(suite):
    suite.write("bad.txt", "9")
    ended = ran(suite, "out", "--seed", "4", "--workers", "1", status=1)
    assert "the comparison is decided: drawing no more cases" in ended.stderr
    drawn = suite.asked
    assert 5 < len(drawn) < 60
    told = suite.summary()
    against = told["against"]
    assert (against["base"], against["verdict"], against["drawn"]) == ("base", "worse", len(drawn))
    assert (against["cases"], against["unpaired"], against["errored"], against["seed"]) == (CASES, 0, 0, 4)
    assert against["interval"][1] < 0
    assert against["interval"][0] <= against["difference"][0] == against["difference"][1] <= against["interval"][1]
    assert f"worse than base: pass rate {against['difference'][0]:+.3f}" in ended.stderr
    assert f"on {len(drawn)} of {CASES} cases drawn at random" in ended.stderr
    rows = suite.rows("out")
    skipped = {row["test_id"] for row in rows if row["status"] == "skipped"}
    assert {row["error"]["code"] for row in rows if row["status"] == "skipped"} == {"not-drawn"}
    assert skipped == {f"c{number}" for number in range(CASES)} - set(drawn)
    assert told["cases"]["skipped"] == len(skipped)
    # a second test on the drawn cases would be wrong a fifth of the time
    for words in (("compare", "base", "out"), ("power", "--from", "out")):
        refused = suite.run(*words)
        assert (refused.status, "stopped once its comparison was decided" in refused.stderr) == (2, True), (
            refused.stderr
        )
    # a resumed run is unchanged: no calls, and the same claim
    again = suite.run("eval", "a.eval.yaml", "--out", "out", "--resume")
    assert (again.status, suite.asked, suite.summary()["against"]) == (1, drawn, against)


def test_a_run_that_is_better_is_not_green_while_cases_were_not_drawn(suite):
    suite.write("bad.txt", "8")
    assert suite.run("eval", "a.eval.yaml", "--out", "low").status == 1
    suite.write("bad.txt", "0")
    ended = suite.run("eval", "a.eval.yaml", "--out", "out", "--against", "low", "--until", "decided")
    told = suite.summary()
    assert (told["against"]["verdict"], told["cases"]["failed"], told["cases"]["errored"]) == ("better", 0, 0)
    assert told["cases"]["skipped"] > 0
    assert ended.status == 3, ended.stderr


def test_the_same_answers_are_not_worse_by_more_than_a_margin_and_show_nothing_without(suite):
    assert ran(suite, "out", "--margin", "0.2").status == 3
    assert suite.summary()["against"]["verdict"] == "non-inferior"
    ended = ran(suite, "whole")
    told = suite.summary("whole")
    assert (ended.status, told["against"]["verdict"], told["cases"]["skipped"]) == (1, "inconclusive", 0)
    assert "inconclusive against base" in ended.stderr


def test_a_killed_run_draws_on_in_the_same_order_and_comes_to_the_same(suite):
    suite.write("bad.txt", "6")
    ran(suite, "whole", "--seed", "9", "--workers", "1")
    straight = suite.asked
    (suite.path / "asked.txt").unlink()
    suite.write("stop", "")
    assert ran(suite, "out", "--seed", "9", "--workers", "1").status == -9
    suite.run("eval", "a.eval.yaml", "--out", "out", "--resume", "--workers", "1", status=1)
    assert list(dict.fromkeys(suite.asked)) == straight
    assert suite.summary()["against"] == suite.summary("whole")["against"]
    refused = suite.run("eval", "a.eval.yaml", "--out", "out", "--resume", "--alpha", "0.2")
    assert (refused.status, "started without --alpha, but this command has 0.2" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--against", "base"], "--against requires --until decided"),
        (["--margin", "0.1"], "--margin requires --against and --until decided"),
        (
            ["--against", "base", "--until", "decided", "--margin", "0"],
            "--margin must be a number from 0.0001 to 0.9999",
        ),
        (["--against", "gone", "--until", "decided"], "no run 'gone'"),
        (
            ["--against", "base", "--until", "decided", "--limit", "5"],
            "conflicts with --against, which draws cases at random",
        ),
        (["--against", "base", "--until", "decided", "--threshold", "0.5"], "had another threshold"),
        (
            ["--against", "base", "--until", "decided", "-t", "echo", "-t", "mock:yes"],
            "--against compares one target with an earlier run, found 2 targets",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_runs(suite, words, message):
    suite.run("eval", "a.eval.yaml", "--out", "out", *words, status=2, says=message)
    assert suite.asked == []


def test_new_and_edited_cases_are_drawn_and_in_no_number(suite):
    lines = (suite.path / "cases.jsonl").read_text().splitlines()
    lines[0] = json.dumps({"id": "c0", "input": "another question"})
    suite.write("cases.jsonl", "\n".join([*lines, json.dumps({"id": "c120", "input": "new"})]))
    ended = ran(suite, "out")
    told = suite.summary()["against"]
    assert (told["unpaired"], told["cases"]) == (2, CASES - 1)
    assert "2 more are new or edited, and not counted" in ended.stderr
    lines = (json.dumps({"id": f"c{number}", "input": "all others"}) for number in range(CASES))
    suite.write("cases.jsonl", "\n".join(lines))
    ran(suite, "other", status=2, says="and this run have no unedited case in common")
