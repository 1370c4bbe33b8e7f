from __future__ import annotations

from dataclasses import replace
from math import sqrt

import pytest
from scipy import stats

from agentv.stats.power.drop import Drop
from agentv.stats.power.power import chance_shown, fewest_cases, mcnemar_power, t_power
from agentv.stats.power.power_simulation import rehearsed_power

DEVIATION = sqrt(0.24)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [  # R 4.2.2: power.t.test(n, delta, sd, sig.level, type = "paired")$power
        ((200, 0.05, DEVIATION, 0.05), 0.300295409798288),
        ((20, 0.1, 0.3, 0.05), 0.293160057553051),
        ((50, 0.02, 0.1, 0.01), 0.11334126988625),
    ],
)
def test_power_of_the_t_test_agrees_with_r(asked, expected):
    assert t_power(*asked) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "asked", [(40, 0.2, 0.05, 0.05), (10, 0.7, 0.0, 0.05), (30, 0.3, 0.1, 0.01), (6, 0.85, 0.1, 0.05)]
)
def test_power_of_mcnemar_is_that_of_every_outcome_counted(asked):
    cases, losses, wins, alpha = asked
    counted = sum(
        stats.multinomial.pmf([lost, won, cases - lost - won], cases, [losses, wins, 1 - losses - wins])
        for lost in range(cases + 1)
        for won in range(min(lost, cases - lost + 1))
        if stats.binomtest(lost, lost + won).pvalue <= alpha
    )
    assert mcnemar_power(*asked) == pytest.approx(counted, abs=1e-9)


def test_each_run_has_the_variance_of_its_own_rate():
    drop = Drop(0.95, 0.1, alike=0.0)
    assert drop.variance(1) == pytest.approx(0.95 * 0.05 + 0.85 * 0.15)
    assert drop.variance(4) == pytest.approx(drop.variance(1) / 4)
    assert (drop.losses - drop.wins, drop.losses) == (pytest.approx(0.1), pytest.approx(0.95 * 0.15))


def test_what_is_shared_falls_out_and_repeats_help_against_the_rest():
    shared = Drop(0.8, 0.1, alike=0.5, shared=1.0)
    apart = replace(shared, shared=0.0)
    assert shared.variance(1) < apart.variance(1)
    assert apart.variance(10**9) == pytest.approx(0.5 * (0.16 + 0.21))
    same = Drop(0.8, 0.1, alike=1.0, shared=1.0)
    assert (same.wins, same.losses) == (pytest.approx(0.0), pytest.approx(0.1))
    assert same.variance(1) == pytest.approx(same.variance(10))


def test_fewer_cases_than_the_signs_of_which_can_be_rare_show_nothing():
    assert [chance_shown(cases, repeat, Drop(1.0, 1.0)) for cases in (2, 5) for repeat in (1, 9)] == [0.0] * 4
    assert chance_shown(6, 1, Drop(1.0, 1.0)) == pytest.approx(1.0)
    assert [fewest_cases(alpha) for alpha in (0.1, 0.05, 0.01)] == [6, 6, 8]


@pytest.mark.parametrize(
    ("cases", "repeat", "drop", "simulated"),
    [  # of compare's own rule, by benchmarks/power.py --rounds 2000
        (6, 1, Drop(0.8, 0.7), 0.131),
        (20, 1, Drop(0.8, 0.324), 0.526),
        (58, 1, Drop(0.95, 0.1), 0.395),
        (100, 1, Drop(0.8, 0.139), 0.639),
        (6, 3, Drop(0.8, 0.6), 0.281),
        (10, 3, Drop(0.8, 0.4), 0.582),
        (50, 3, Drop(0.95, 0.1), 0.639),
        (421, 3, Drop(0.8, 0.05), 0.741),
    ],
)
def test_what_is_promised_is_what_compare_shows(cases, repeat, drop, simulated):
    assert chance_shown(cases, repeat, drop) == pytest.approx(simulated, abs=0.05)


def test_a_rehearsal_gives_the_same_number_each_time_and_agrees_with_what_can_be_counted():
    drop = Drop(0.8, 0.4, alike=0.0)
    assert rehearsed_power(12, 1, drop) == rehearsed_power(12, 1, drop)
    for cases in (8, 20):
        counted = mcnemar_power(cases, drop.losses, drop.wins)
        assert rehearsed_power(cases, 1, drop) == pytest.approx(counted, abs=0.05)


def test_where_more_cases_change_than_can_be_counted_the_t_test_goes_on():
    drop = Drop(0.8, 0.01)
    counted = mcnemar_power(20_000, drop.losses, drop.wins)
    assert chance_shown(20_000, 1, drop) == pytest.approx(counted, abs=0.01)


def test_what_is_certain_is_always_seen():
    assert t_power(10, 0.1, 0.0) == 1.0
    assert t_power(10**6, 0.5, 0.1) == 1.0


@pytest.mark.parametrize("asked", [(1, 0.1, 0.1), (10, 0, 0.1), (10, 0.1, -1), (10, 0.1, 0.1, 1)])
def test_refuses_what_cannot_be_planned(asked):
    with pytest.raises(ValueError, match="no power"):
        t_power(*asked)


def test_refuses_chances_that_are_none_and_a_drop_below_nothing():
    for asked in ((10, 0.0, 0.0), (10, 0.8, 0.4), (0, 0.2, 0.1), (10, -0.1, 0.2)):
        with pytest.raises(ValueError, match="no power"):
            mcnemar_power(*asked)
    for rate, difference in ((0.3, 0.4), (0.8, 0.0), (1.1, 0.1)):
        with pytest.raises(ValueError, match="no drop"):
            Drop(rate, difference)
