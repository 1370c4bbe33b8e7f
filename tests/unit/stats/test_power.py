from __future__ import annotations

from math import ceil, sqrt
from statistics import NormalDist

import pytest

from agentv.stats.power import Spread, cases_needed, detectable, power, spread_of_rate

DEVIATION = sqrt(0.24)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [  # R 4.2.2: power.t.test(n, delta, sd, sig.level, type = "paired")$power
        ((200, 0.05, DEVIATION, 0.05), 0.300295409798288),
        ((20, 0.1, 0.3, 0.05), 0.293160057553051),
        ((50, 0.02, 0.1, 0.01), 0.11334126988625),
    ],
)
def test_power_agrees_with_r(asked, expected):
    assert power(*asked) == pytest.approx(expected, abs=1e-9)


def test_the_least_that_can_be_seen_agrees_with_r():
    # R: power.t.test(n = 200, power = 0.8, sd = sqrt(0.24), type = "paired", tol = 1e-12)$delta
    assert detectable(200, DEVIATION) == pytest.approx(0.0975212505257762, abs=1e-9)
    assert detectable(10, 0.3, 0.9, 0.01) == pytest.approx(0.452920345678528, abs=1e-9)


def test_the_cases_needed_agree_with_r():
    # R: power.t.test(power = 0.8, delta = 0.05, sd = sqrt(0.24), type = "paired")$n is 755.4154
    assert cases_needed(0.05, DEVIATION) == 756
    assert cases_needed(1e-6, DEVIATION) is None
    assert cases_needed(0.9, 0.001) == 2


def test_miller_needs_969_questions_and_students_t_two_more():
    # E. Miller, arXiv:2411.00640, section 5: a difference of 3 points, ω² = 1/9, σ² = 0, by the normal distribution
    variance = Spread(1 / 9, 0.0).of_case(1)
    quantiles = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
    assert ceil(quantiles**2 * variance / 0.03**2) == 969
    assert cases_needed(0.03, sqrt(variance)) == 971


def test_repeats_help_against_the_noise_within_cases_only():
    spread = spread_of_rate(0.8, alike=0.5, shared=0.5)
    assert (spread.between, spread.within) == (pytest.approx(0.08), pytest.approx(0.08))
    assert [round(spread.of_case(repeat), 6) for repeat in (1, 4, 10**9)] == [0.24, 0.12, 0.08]


def test_what_is_certain_is_always_seen():
    assert power(10, 0.1, 0.0) == 1.0
    assert detectable(10, 0.0) == 0.0
    assert power(10**6, 0.5, 0.1) == 1.0


@pytest.mark.parametrize("asked", [(1, 0.1, 0.1), (10, 0, 0.1), (10, 0.1, -1), (10, 0.1, 0.1, 1)])
def test_refuses_what_cannot_be_planned(asked):
    with pytest.raises(ValueError, match="no power"):
        power(*asked)


def test_refuses_a_power_or_a_spread_out_of_range():
    with pytest.raises(ValueError, match=r"no power: 1\.0"):
        detectable(10, 0.1, 1.0)
    with pytest.raises(ValueError, match="no spread"):
        spread_of_rate(1.0)
