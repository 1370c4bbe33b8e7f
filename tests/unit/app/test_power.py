import json

import pytest

from agentv.app.power import PlanRequest, plan
from agentv.errors import UsageError
from agentv.sdk import evaluate
from doubles.stored_runs import write_rows

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
    return evaluate("a.eval.yaml", workers=1)  # concurrent trials would draw in any order


def test_an_earlier_run_tells_cases_repeat_rate_and_noise(coins):
    found = plan(PlanRequest(earlier="last"))
    assert found.pilot.run_id == coins.directory.name
    assert (found.plan.cases, found.plan.repeat, found.plan.assumed.rate) == (4, 4, 0.625)
    noise = found.pilot.verdicts
    assert noise.target == pytest.approx(1 / 12)  # one case of four is a coin toss: variance 1/3 in it, 0 in the others
    assert found.plan.assumed.alike == pytest.approx(noise.cases / (noise.cases + noise.target))
    assert (found.pilot.mean.mean, found.pilot.mean.clusters) == (0.625, 4)
    assert found.pilot.disagreement.value == pytest.approx(1 / 6)  # 2/3 in one case of four
    assert found.pilot.scores.advice() == "more cases"
    assert found.cases_given
    assert (found.rate_from, found.alike_from) == ("run", "run")


def test_votes_of_a_judge_tell_its_noise(coins):
    index = coins.directory / "index.jsonl"
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    for row in rows:
        row["scores"][0]["details"] = {"votes": [0.0, 0.5, 1.0]}
        row["scores"].append(row["scores"][0] | {"details": {"votes": [0.25, 0.75]}})
    write_rows(index.parent, (json.dumps(row).encode() for row in rows))
    noise = plan(PlanRequest(earlier="last")).pilot.scores
    assert noise.counts == (8, 32, 80)  # each assertion of a case counts as a case
    assert noise.judge == pytest.approx((16 * 0.5 + 16 * 0.125) / (80 - 32))
    assert noise.advice() == "a steadier judge"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"detect": 5.0}, "did you mean 0.05"),
        ({"detect": 0.85}, "a pass rate of 0.8 cannot drop or rise that far"),
        ({"cases": 1}, "needs at least 2 cases"),
        ({"alpha": 0.9}, "--power 0.8: must be above --alpha"),
        ({"earlier": "nothing"}, "cannot plan from"),
    ],
)
def test_what_cannot_be_planned_is_refused(tmp_path, monkeypatch, asked, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        plan(PlanRequest(**asked))
    assert message in f"{refused.value} {refused.value.hint}"
    assert refused.value.status == 2


def test_a_run_that_judged_nothing_is_refused(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.eval.yaml").write_text(json.dumps(SUITE | {"target": {"provider": "mock", "error": "no"}}))
    evaluate("a.eval.yaml")
    with pytest.raises(UsageError, match="no trial was graded"):
        plan(PlanRequest(earlier="last"))


def changed(directory, change):
    index = directory / "index.jsonl"
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    kept = [row | change(row) for row in rows if change(row) is not None]
    write_rows(directory, (json.dumps(row).encode() for row in kept))


@pytest.mark.parametrize(("status", "rate"), [("passed", 0.9), ("failed", 0.1)])
def test_where_all_passed_or_none_the_rate_is_assumed(coins, status, rate):
    changed(coins.directory, lambda _: {"status": status, "score": float(status == "passed")})
    found = plan(PlanRequest(earlier="last"))
    assert (found.plan.assumed.rate, found.rate_from, found.alike_from) == (pytest.approx(rate), "assumed", "assumed")
    assert found.pilot.trials == (16 if status == "passed" else 0, 16)


def test_samples_that_ended_early_are_refused_with_the_reason(coins):
    changed(coins.directory, lambda _: {"alpha": 0.05})
    with pytest.raises(
        UsageError,
        match=r": it stopped sampling each case once decided \(until: decided\), so its rates and their noise are biased",
    ):
        plan(PlanRequest(earlier="last"))
    changed(coins.directory, lambda row: {"repeat": 1} if row["sample"] == 1 else None)
    assert plan(PlanRequest(earlier="last")).plan.cases == 4  # with one sample each, no case is left out


def test_an_interval_has_a_width_where_all_cases_have_one_mean(coins):
    changed(coins.directory, lambda row: {"score": 0.9 if row["sample"] == 1 else 0.5})
    mean = plan(PlanRequest(earlier="last")).pilot.mean
    assert mean.mean == pytest.approx(0.6)
    assert mean.low < 0.5
    assert mean.high > 0.7


def test_scores_and_clusters_are_those_of_the_run(coins):
    changed(
        coins.directory, lambda row: {"score": 0.9 if row["sample"] % 2 else 0.5, "conversation_id": row["test_id"]}
    )
    found = plan(PlanRequest(earlier="last"))
    shown = (found.plan.assumed.rate, found.plan.assumed.deviation)
    assert shown == (pytest.approx(0.7), pytest.approx(0.2066, abs=1e-3))
    pairs = {"a": "x", "b": "x", "c": "y", "d": "y"}
    changed(coins.directory, lambda row: {"conversation_id": pairs[row["test_id"]]})
    assumed = plan(PlanRequest(earlier="last")).plan.assumed
    assert (assumed.cluster_size, found.plan.assumed.cluster_size, assumed.fewest) == (2, 1, 12)


def test_a_margin_is_planned_by_the_rule_of_compare_itself():
    alike = plan(PlanRequest(cases=120, margin=0.1, alike=1.0, shared=1.0)).plan
    assert alike.chance(0.0) == 1.0, "nothing moves, and of 120 cases at most 3 % of others may"
    assert 0.1 < plan(PlanRequest(cases=120, margin=0.1)).plan.chance(0.0) < 0.9
    for asked, message in (
        ({"margin": 0.0}, "--margin 0: must be between 0 and 1"),
        ({"margin": 0.1, "detect": 0.05}, "is not larger than --margin 0.1"),
        ({"icc": 0.5}, "--cluster-size"),
        ({"deviation": 0.5}, "scores with the mean 0.8 cannot have the standard deviation 0.5"),
    ):
        with pytest.raises(UsageError) as refused:
            plan(PlanRequest(**asked))
        assert message in f"{refused.value} {refused.value.hint}"
