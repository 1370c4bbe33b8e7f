from __future__ import annotations

import json

import pytest

from agentv.app.power import PlanAsked, plan
from agentv.errors import UsageError
from agentv.sdk import evaluate

SUITE = {
    "name": "coins",
    "target": "python:coin.py:answer",
    "run": {"repeat": 4},
    "tests": [{"id": name, "input": name, "assert": [{"contains": "heads"}]} for name in ("a", "b", "c", "d")],
}
COIN = """thrown = {}
def answer(prompt, case_id):
    thrown[case_id] = thrown.get(case_id, 0) + 1
    return "heads" if case_id in "ab" or (case_id == "c" and thrown[case_id] % 2) else "tails"
"""


@pytest.fixture
def coins(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "coin.py").write_text(COIN)
    (tmp_path / "a.eval.yaml").write_text(json.dumps(SUITE))
    return evaluate("a.eval.yaml")


def test_what_is_not_said_is_usual():
    planned = plan(PlanAsked()).plan
    assert (planned.cases, planned.repeat, planned.assumed.rate, planned.assumed.alike) == (200, 1, 0.8, 0.5)
    assert planned.least == pytest.approx(0.0975212505257762)  # as R's power.t.test, in the tests of stats


def test_an_earlier_run_tells_cases_repeat_rate_and_noise(coins):
    found = plan(PlanAsked(earlier="last"))
    assert found.pilot.run_id == coins.directory.name
    assert (found.plan.cases, found.plan.repeat, found.plan.assumed.rate) == (4, 4, 0.625)
    noise = found.pilot.verdicts
    assert noise.target == pytest.approx(1 / 12)  # one case of four throws a coin: 1/3 in it, none in the others
    assert found.plan.assumed.alike == pytest.approx(noise.cases / (noise.cases + noise.target))
    assert (found.pilot.mean.mean, found.pilot.mean.clusters) == (0.625, 4)
    assert found.pilot.disagreement.value == pytest.approx(1 / 6)  # 2/3 in one case of four
    assert found.pilot.scores.advice() == "more cases"
    assert found.cases_given


def test_what_is_said_wins_over_the_earlier_run(coins):
    planned = plan(PlanAsked(earlier="last", cases=50, repeat=1, rate=0.9, alike=0.1)).plan
    assert (planned.cases, planned.repeat, planned.assumed.rate, planned.assumed.alike) == (50, 1, 0.9, 0.1)


def test_votes_of_a_judge_tell_its_noise(coins):
    index = coins.directory / "index.jsonl"
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    for row in rows:
        row["scores"][0]["details"] = {"votes": [0.0, 0.5, 1.0]}
        row["scores"].append(row["scores"][0] | {"details": {"votes": [0.25, 0.75]}})
    index.write_text("".join(json.dumps(row) + "\n" for row in rows))
    noise = plan(PlanAsked(earlier="last")).pilot.scores
    assert noise.counts == (8, 32, 80)  # each assertion of a case is a case of its own
    assert noise.judge == pytest.approx((16 * 0.5 + 16 * 0.125) / (80 - 32))
    assert noise.advice() == "a steadier judge"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"detect": 0.0}, "--detect 0: a difference of pass rates lies between 0 and 1"),
        ({"detect": 5.0}, "did you mean 0.05"),
        ({"detect": 0.85}, "a pass rate of 0.8 cannot change by so much"),
        ({"cases": 1}, "needs 2 cases at least"),
        ({"rate": 1.0}, "--rate 1: it lies between 0 and 1"),
        ({"alpha": 0.9}, "--power 0.8: it lies above --alpha"),
        ({"earlier": "nothing"}, "there is nothing to plan from"),
    ],
)
def test_what_cannot_be_planned_is_refused(tmp_path, monkeypatch, asked, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        plan(PlanAsked(**asked))
    assert message in f"{refused.value} {refused.value.hint}"
    assert refused.value.status == 2


def test_a_run_that_judged_nothing_is_refused(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.eval.yaml").write_text(json.dumps(SUITE | {"target": {"provider": "mock", "error": "no"}}))
    evaluate("a.eval.yaml")
    with pytest.raises(UsageError, match="no trial of it was judged"):
        plan(PlanAsked(earlier="last"))
