"""Entries of the trials of a report."""

from __future__ import annotations

import pytest

from agentv.extensions.view.pages.entries import NAMES, STATUSES, TEASER, Entries, early_facts, teaser
from agentv.model.run.cases import Sample
from agentv.stats.samples.deciding import Rule, stopped_by
from agentv.stats.samples.stopped import unbiased_rate
from doubles.html_reports import early, samples
from doubles.trials import ROOT, errored_score, finished, graded, scored, trial


def test_what_repeats_is_written_once():
    entries = Entries()
    rows = [entries.short(finished(trial=trial(f"c{number}", tags=("fast",)))) for number in range(3)]
    assert [row[0] for row in rows] == ["c0", "c1", "c2"]
    assert len({tuple(map(str, row[1:4])) for row in rows}) == 1
    tables = entries.tables()
    assert (tables["files"], tables["targets"], tables["prompts"], tables["tags"]) == (
        [("refunds", "/repo/evals/refund.eval.yaml")],
        ["gpt"],
        [],
        ["fast"],
    )


def test_suites_of_one_name_are_told_apart_by_their_files_in_the_order_of_run_json():
    suites = [{"name": "refunds", "path": f"{name}.yaml", "targets": [{"name": "z"}, {"name": "a"}]} for name in "ba"]
    entries = Entries.of_run({"suites": suites}, ROOT)
    for name, target in (("a", "a"), ("b", "z")):
        row = entries.short(finished(trial=trial(path=f"{ROOT}/{name}.yaml", target=target)))
        assert (row[1], row[2]) == ({"b": 0, "a": 1}[name], {"z": 0, "a": 1}[target])
    assert entries.tables()["files"] == [("refunds", "b.yaml"), ("refunds", "a.yaml")]
    assert entries.tables()["clusters"] == [], "each case is a cluster of its own"


def test_each_assertion_is_told_with_how_it_ended():
    entries = Entries()
    scores = [scored(True, name="a"), scored(False, name="b", negate=True), errored_score(name="c")]
    row = entries.short(finished("errored", scores=scores))
    assert row[12] == [0, 0, 1, 1, 2, 2]
    assert entries.tables()["assertions"] == [("contains", "a"), ("not-contains", "b"), ("contains", "c")]


def test_names_of_assertions_are_bounded():
    entries = Entries()
    for number in range(NAMES + 5):
        entries.short(finished(scores=[scored(True, name=f"a{number}")]))
    assert len(entries.tables()["assertions"]) == NAMES + 1
    assert entries.tables()["assertions"][-1] == ("contains", None)


@pytest.mark.parametrize(
    ("aggregate", "status"),
    [("pass_any", "passed"), ("majority", "passed"), ("pass_all", "failed"), ("mean", "failed")],
)
def test_the_verdict_of_samples_is_that_of_their_rule(aggregate, status):
    entries = Entries()
    rows = [entries.short(one) for one in samples(True, True, False, aggregate=aggregate)]
    assert {row[14] for row in rows} == {0}
    assert [STATUSES[number] for number in entries.tables()["verdicts"]] == [status]


def test_of_samples_that_may_end_early_the_bounds_are_those_that_hold_whenever_one_looks():
    entries = Entries()
    for one in [*early("low", *[False] * 12), *early("open", True, False), *samples(True, False)]:
        entries.short(one)
    low, still, ordinary = entries.tables()["early"]
    assert (low["why"], low["alpha"]) == ("below", 0.05)
    assert low["bounds"][0] == 0
    assert low["bounds"][1] < 0.8
    assert (still, ordinary) == ({"alpha": 0.05, "why": None, "bounds": None, "rate": None}, None)
    assert low["rate"] == 0.0


def test_a_case_with_one_sample_is_in_no_group():
    entries = Entries()
    assert entries.short(finished())[14] == -1
    assert entries.tables()["verdicts"] == []


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (finished("errored"), "timeout: no answer after 3 s"),
        (finished("failed"), "output lacks '30 days'"),
        (finished("failed", scores=[graded(0.3, False, name="tone")]), "tone: scored 0.30"),
        (finished(output="\n You may.\nYes."), "You may. Yes."),
        (finished(output=None), ""),
        (finished(output="x\u202e" * 1000), ("x\\u202e" * 30)[: TEASER - 1] + "…"),
    ],
)
def test_one_line_says_why(result, expected):
    assert teaser(result) == expected


PASS, FAIL, ERRED = Sample("passed", 1.0), Sample("failed", 0.0), Sample("errored", None)
EARLY = Rule(20, 0.8, alpha=0.05)


def test_a_case_that_gets_all_its_samples_has_no_such_facts():
    assert early_facts([PASS], Rule(3, 0.8)) is None


def test_a_case_that_gets_more_samples_has_neither_bounds_nor_a_rate():
    assert early_facts([PASS, FAIL], EARLY) == {"alpha": 0.05, "why": None, "bounds": None, "rate": None}


def test_a_case_whose_samples_ended_has_its_bounds_and_its_rate_without_bias():
    samples = [PASS, FAIL, FAIL, FAIL, FAIL, FAIL]
    stopped = stopped_by(samples, EARLY)
    rate = unbiased_rate(stopped, threshold=0.8, alpha=0.05, repeat=20)
    assert early_facts(samples, EARLY) == {
        "alpha": 0.05,
        "why": "below",
        "bounds": [stopped.low, stopped.high],
        "rate": rate,
    }
    assert 0 < rate < 1


def test_a_case_whose_only_sample_errored_has_neither():
    assert early_facts([ERRED], EARLY) == {"alpha": 0.05, "why": "errored", "bounds": None, "rate": None}
    found = early_facts([PASS, ERRED], EARLY)
    assert (found["rate"], found["bounds"][0] >= 0) == (None, True)
