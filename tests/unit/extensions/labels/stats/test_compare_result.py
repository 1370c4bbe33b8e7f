import pytest

from agentv.extensions.labels.stats.agreement import JudgeAccuracy
from agentv.extensions.labels.stats.compare_result import (
    AssertionComparison,
    ComparedJudge,
    JudgeComparison,
)
from agentv.extensions.labels.stats.posterior import Estimated

ACCURATE = JudgeAccuracy(None, None, Estimated(0.9, 0.8, 0.95), None)


def judge(name, cost, verdict=None, accuracy=ACCURATE):
    return ComparedJudge(name, "m", 1, 0, None, accuracy=accuracy, cost_usd=cost, verdict=verdict)


def compared(*judges, reference=0):
    return AssertionComparison("polite", "m", 60, weighted=True, notes=(), judges=judges, reference=reference)


@pytest.mark.parametrize(
    ("verdict", "cheapest"),
    [("better", "a"), ("equivalent", "a"), ("non-inferior", "a"), ("worse", "best"), ("inconclusive", "best")],
)
def test_a_cheaper_judge_is_recommended_only_where_it_is_shown_to_be_no_worse(verdict, cheapest):
    assert compared(judge("best", 3.0), judge("a", 1.0, verdict)).cheapest.name == cheapest


def test_a_judge_that_costs_nothing_is_the_cheapest():
    assert (
        compared(judge("best", 0.5), judge("a", 0.0, "equivalent"), judge("b", 0.9, "equivalent")).cheapest.name == "a"
    )


def test_where_no_judge_gave_enough_verdicts_none_is_recommended():
    found = compared(judge("a", 1.0, "better"), reference=None)
    assert (found.cheapest, found.undecided) == (None, ())


def test_a_judge_as_dear_as_the_cheapest_need_not_be_decided():
    found = compared(judge("best", 3.0), judge("a", 3.0, "inconclusive"), judge("b", 2.9, "inconclusive"))
    assert [one.name for one in found.undecided] == ["b"]


def test_a_comparison_is_complete_where_every_judge_of_every_assertion_gave_enough_verdicts():
    whole, short = compared(judge("a", 1.0), judge("b", 1.0)), compared(judge("a", 1.0), judge("b", 1.0, accuracy=None))
    for assertions, complete in (((whole,), True), ((whole, short), False), ((short,), False), ((), True)):
        assert JudgeComparison("r", 0.05, 0, None, assertions).is_complete is complete
