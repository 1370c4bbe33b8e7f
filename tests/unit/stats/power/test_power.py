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
    counted_out(asked)


def test_power_of_mcnemar_where_every_pair_changes_and_where_all_are_lost():
    for asked in ((6, 1.0, 0.0, 0.05), (8, 0.6, 0.4, 0.05), (2, 0.5, 0.5, 0.6)):
        counted_out(asked)
    assert mcnemar_power(1, 1.0, 0.0) == 0.0


def counted_out(asked):
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


def test_the_numbers_of_a_drop_by_hand():
    drop = Drop(0.8, 0.1, alike=0.4, shared=0.3)
    covariance = 0.3 * 0.4 * (0.7 * 0.2) ** 0.4 * sqrt(0.16 * 0.21) ** 0.6
    assert (drop.after, drop.covariance) == (pytest.approx(0.7), pytest.approx(covariance))
    assert drop.losses == pytest.approx(0.8 * 0.3 - covariance)
    assert drop.wins == pytest.approx(drop.losses - 0.1)
    assert drop.variance(3) == pytest.approx(0.4 * 0.37 - 2 * covariance + 0.6 * 0.37 / 3)
    # of verdicts sampled once the variance is that of wins and losses
    assert drop.variance(1) == pytest.approx(drop.losses + drop.wins - 0.01)


@pytest.mark.parametrize(
    "given",
    [{"alike": -0.1}, {"alike": 1.1}, {"shared": -0.1}, {"shared": 1.1}, {"difference": 0.0}, {"difference": 0.9}],
)
def test_a_drop_out_of_range_is_refused(given):
    with pytest.raises(ValueError, match="no drop"):
        Drop(**{"rate": 0.8, "difference": 0.1} | given)
    assert Drop(1.0, 1.0, alike=1.0, shared=0.0).after == 0.0


def test_the_rule_that_counts_is_chosen_by_how_many_cases_and_samples_there_are():
    drop, agreeing = Drop(0.8, 0.3), Drop(0.8, 0.3, alike=1.0)
    assert chance_shown(40, 1, drop) == mcnemar_power(40, drop.losses, drop.wins)
    assert chance_shown(40, 5, agreeing) == mcnemar_power(40, agreeing.losses, agreeing.wins), (
        "samples that agree are one"
    )
    assert chance_shown(30, 3, drop, 0.01) == rehearsed_power(30, 3, drop, 0.01)
    for cases, repeat, one in ((31, 3, drop), (50_000, 1, Drop(0.8, 0.01))):
        assert chance_shown(cases, repeat, one, 0.01) == t_power(
            cases, one.difference, sqrt(one.variance(repeat)), 0.01
        )


def test_fewer_cases_than_the_signs_of_which_can_be_rare_show_nothing():
    assert [chance_shown(cases, repeat, Drop(1.0, 1.0)) for cases in (2, 5) for repeat in (1, 9)] == [0.0] * 4
    assert chance_shown(6, 1, Drop(1.0, 1.0)) == pytest.approx(1.0)
    assert [chance_shown(5, repeat, Drop(1.0, 1.0), 0.5) for repeat in (1, 9)] == [0.0, 0.0], "six, whatever alpha is"
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
    assert t_power(10, 1.0, 1e-12) == 1.0, "so far out that the distribution has no number left"
    assert 0.0 < t_power(2, 0.1, 0.1) < 0.2


@pytest.mark.parametrize("asked", [(1, 0.1, 0.1), (10, 0, 0.1), (10, 0.1, -1), (10, 0.1, 0.1, 1), (10, 0.1, 0.1, 0)])
def test_refuses_what_cannot_be_planned(asked):
    with pytest.raises(ValueError, match="no power"):
        t_power(*asked)


def test_refuses_chances_that_are_none_and_a_drop_below_nothing():
    for asked in (
        *((10, 0.0, 0.0), (10, 0.8, 0.4), (0, 0.2, 0.1), (10, -0.1, 0.2)),
        *((10, 0.2, -0.1), (10, 0.2, 0.1, 0.0), (10, 0.2, 0.1, 1.0)),
    ):
        with pytest.raises(ValueError, match="no power"):
            mcnemar_power(*asked)
    for rate, difference in ((0.3, 0.4), (0.8, 0.0), (1.1, 0.1)):
        with pytest.raises(ValueError, match="no drop"):
            Drop(rate, difference)
