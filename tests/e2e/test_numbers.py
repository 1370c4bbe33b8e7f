"""The confidence that runs report for their numbers."""

import json

import pytest

pytestmark = pytest.mark.libraries

COIN = """thrown = {}
def answer(prompt, case_id):
    thrown[case_id] = thrown.get(case_id, 0) + 1
    return "heads" if thrown[case_id] % 2 else "tails"
"""
SUITE = """target: "python:coin.py:answer"
tests:
  - {id: coin, input: throw, assert: [contains: heads]}
  - {id: sure, input: throw, assert: [{contains-any: [heads, tails]}]}
"""


def test_a_plan_from_a_run_and_a_trend_over_runs(project):
    project.write_files({"coin.py": COIN, "a.eval.yaml": SUITE})
    project.run("eval", "a.eval.yaml", "--repeat", "4")
    project.run("eval", "a.eval.yaml")
    planned = project.run("power", "--from", "last", "--cases", "50", "--detect", "0.2", status=0)
    assert planned.stdout.startswith("Enough") or planned.stdout.startswith("Not enough")
    assert json.loads(project.run("power", "--cases", "40", "--json").stdout)["cases"] == 40
    refused = project.run("power", "--cases", "40", "--detect", "0")
    assert (refused.status, refused.stdout) == (2, "")
    assert "--detect 0: must be between 0 and 1" in refused.stderr
    drawn = project.run("trend", "--suite", "a", "--last", "5")
    assert "a on python:coin.py:answer: pass rate of 2 runs, oldest first" in drawn.stdout
    assert len(json.loads(project.run("trend", "--json").stdout)["runs"]) == 2
    assert project.run("trend", "--suite", "b").status == 2
    alone = project.run("trend", "--target", "python:coin.py:answer")
    assert alone.stdout == drawn.stdout, alone.stderr
    pinned = project.run("results", "pin", "last")
    assert pinned.stdout.startswith("pinned 20"), pinned.stderr
    assert json.loads(project.run("trend", "--json").stdout)["baseline"]["pinned"] is True
    misspelt = project.run("trend", "--target", "python:coin.py:anser", "--json")
    assert (misspelt.status, misspelt.stdout) == (2, "")
    assert "did you mean 'python:coin.py:answer'? the suite's targets: python:coin.py:answer" in misspelt.stderr
