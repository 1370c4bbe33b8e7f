import pytest

from agentv.app.compare.measuring import Differences, may_claim, measured
from agentv.model.comparison import Question
from agentv.stats.unseen import unseen_share


def scores(*values, size=1):
    """Differences of the mean score, so many of them in each cluster."""
    return Differences("mean score", values, [number // size for number in range(len(values))])


def test_a_measure_by_itself_is_not_equivalent_by_what_a_few_cases_do_not_hold():
    assert measured(scores(0.001, *[0.0] * 9), Question(margin=0.02)).verdict == "cannot tell"
    assert measured(scores(0.001, *[0.0] * 199), Question(margin=0.02)).verdict == "equivalent"


@pytest.mark.parametrize("size", [1, 2])
def test_the_unseen_reach_by_clusters_where_all_differences_are_one(size):
    found = measured(scores(*[-0.3] * 10 * size, size=size), Question())
    reach = 0.3 * unseen_share(10)
    assert (found.interval, found.verdict) == (pytest.approx((-0.3 - reach, -0.3 + reach)), "worse")


@pytest.mark.parametrize(("moved", "margin", "may"), [(5, 0.0, False), (6, 0.0, True), (1, 0.1, True), (0, 0.1, False)])
def test_what_moved_in_too_few_cases_cannot_claim_anything(moved, margin, may):
    assert may_claim(scores(*[0.5] * moved, *[0.0] * 20), Question(margin=margin)) is may


def test_clusters_that_moved_alike_have_an_interval_all_the_same():
    reach = 0.5 * unseen_share(10)
    found = measured(scores(*[1.0, 0.0] * 10, size=2), Question(margin=0.45))  # of two targets, one was mended
    assert (found.interval, found.verdict) == (pytest.approx((0.5 - reach, 0.5 + reach)), "cannot tell")
    none = measured(scores(*[1.0, -1.0] * 10, size=2), Question())
    assert none.interval == pytest.approx((-unseen_share(10), unseen_share(10)))
