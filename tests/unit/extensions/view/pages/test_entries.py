"""Entries of the trials of a report."""

import pytest

from agentv.extensions.view.pages.entries import NAMES, TEASER, Entries, early_facts, teaser
from agentv.model.run.cases import Sample
from agentv.stats.samples.deciding import Rule, stopped_by, unbiased_rate
from doubles.html_reports import early, samples
from doubles.trials import finished, graded, scored


def test_names_of_assertions_are_bounded():
    entries = Entries()
    for number in range(NAMES + 5):
        entries.short(finished(scores=[scored(True, name=f"a{number}")]))
    assert len(entries.tables()["assertions"]) == NAMES + 1
    assert entries.tables()["assertions"][-1] == ("contains", None)


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


def test_a_case_whose_samples_ended_has_its_bounds_and_its_rate_without_bias():
    samples = [PASS, FAIL, FAIL, FAIL, FAIL, FAIL]
    stopped = stopped_by(samples, EARLY)
    rate = unbiased_rate(stopped, threshold=0.8, alpha=0.05, repeat=20)
    shown = early_facts(samples, EARLY)
    assert shown == {"alpha": 0.05, "why": "below", "bounds": [stopped.low, stopped.high], "rate": rate}
    assert 0 < rate < 1


def test_a_case_whose_only_sample_errored_has_neither():
    assert early_facts([ERRED], EARLY) == {"alpha": 0.05, "why": "errored", "bounds": None, "rate": None}
    found = early_facts([PASS, ERRED], EARLY)
    assert (found["rate"], found["bounds"][0] >= 0) == (None, True)
