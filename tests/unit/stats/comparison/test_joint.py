from __future__ import annotations

from dataclasses import dataclass
from math import inf

import pytest
from scipy import stats

from agentv.stats.comparison.joint import JointTest, StudentT, Tail


@dataclass(frozen=True)
class Given:
    """A test with this p-value and this interval."""

    p_value: float
    ends: tuple[float, float]

    def p(self, null: float = 0.0) -> float:
        return self.p_value

    def interval(self, level: float) -> tuple[float, float]:
        return self.ends


def test_a_value_is_rejected_only_if_all_tests_reject_it():
    joint = JointTest(0.2, [Given(0.01, (0.1, 0.3)), Given(0.2, (-0.05, 0.25)), Given(0.03, (0.15, 0.4))])
    assert joint.p() == 0.2
    assert joint.interval(0.95) == (-0.05, 0.4)
    assert joint.p(0.2) == 1.0, "no test rejects the mean itself"


@pytest.mark.parametrize(
    ("ends", "interval"),
    [((-3.0, 2.0), (-1.0, 1.0)), ((0.3, 0.5), (0.2, 0.5)), ((-0.4, 0.1), (-0.4, 0.2)), ((0.1, 0.4), (0.1, 0.4))],
)
def test_an_interval_holds_the_mean_and_ends_where_a_difference_can(ends, interval):
    assert JointTest(0.2, [Given(0.01, ends)]).interval(0.95) == interval


def test_students_t_without_an_error_rejects_all_but_the_mean():
    alike = StudentT(0.2, 0.0, 9)
    assert (alike.p(), alike.p(0.2), alike.interval(0.95)) == (0.0, 1.0, (0.2, 0.2))
    spread = StudentT(0.2, 0.1, 9)
    assert spread.p(0.2) == 1.0
    assert spread.p() == spread.p(0.4) == pytest.approx(2 * stats.t.sf(2, 9))
    assert StudentT(0.2, 0.1, inf).p() == pytest.approx(2 * stats.norm.sf(2))


LOSSES, REST = [-0.9, -0.6], [0.1] * 18
MEAN = (sum(LOSSES) + sum(REST)) / 20


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_tail_of_gains_is_that_of_losses_turned(sign):
    tail = Tail.of([-sign * one for one in (*LOSSES, *REST)], -sign * MEAN, 0.9, sign)
    assert (tail.seen, tail.count) == (20, 2)
    assert (tail.rest, tail.large) == (pytest.approx(-sign * 0.1), pytest.approx(sign * 0.75))
    share = stats.binomtest(2, 20).proportion_ci(0.95, "exact").high
    end = -sign * 0.1 * (1 - share) + sign * 0.75 * share
    low, high = tail.interval(0.95)
    outer, inner = (low, high) if sign < 0 else (high, low)
    assert (outer, inner) == (pytest.approx(end), pytest.approx(-sign * MEAN))
    assert tail.p(end) == pytest.approx(0.05)
    assert tail.p(-sign * MEAN) == 1.0


def test_a_tail_tests_values_on_its_own_side_alone_and_none_beyond_what_it_can_reach():
    tail = Tail.of([*LOSSES, *REST], MEAN, 0.9, -1)
    assert tail.p(MEAN + 0.01) == tail.p(0.5) == 0.0
    assert tail.p(-0.75) == tail.p(-0.9) == 0.0, "were every case a large loss, the mean would be no lower"
    assert 0 < tail.p(-0.3) < tail.p(-0.1) < tail.p(0.0) <= 1.0
    assert tail.p(0.0) == pytest.approx(min(1.0, 2 * stats.binom.cdf(2, 20, 0.1 / 0.85)))


def test_a_large_loss_is_at_least_half_of_what_a_case_could_lose():
    for loss, count in ((-0.44, 0), (-0.45, 1), (-0.46, 1)):
        assert Tail.of([loss, *REST], 0.05, 0.9, -1).count == count
    nothing_to_lose = Tail.of([0.0, 0.0, 0.2, 0.4], 0.15, 0.0, -1)
    assert (nothing_to_lose.count, nothing_to_lose.large) == (0, 0.0)


def test_where_no_case_could_be_further_out_than_the_mean_there_is_no_tail():
    assert Tail.of([-0.9] * 8, -0.9, 0.9, -1) is None
    assert Tail.of([0.2] * 8, 0.2, 0.2, 1) is None
    assert Tail.of([0.1] * 8, 0.1, 0.05, 1) is None
    assert Tail.of([0.05] * 8, 0.05, 0.2, 1) is not None
    assert Tail.of([0.0] * 8, 0.0, 0.0, 1) is None
