"""Runs that are drawn by a plan have the means, variances and correlations that it assumes."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from agentv.stats.power.drop import Drop
from agentv.stats.power.power_simulation import Rehearsal, _quantiles, _scores, _signs, rehearsed_power


def drawn(plan, rounds=1):
    runs = list(plan.runs(rounds))
    before, after = (np.array([getattr(one, name) for one in runs]) for name in ("before", "after"))
    return before, after, runs


def test_each_run_has_its_own_rate_and_cases_that_are_alike_as_assumed():
    plan = Rehearsal(20_000, 4, 0.8, 0.2, alike=0.4, shared=0.5)
    before, after, (run,) = drawn(plan)
    assert (before.mean(), after.mean()) == (pytest.approx(0.8, abs=0.01), pytest.approx(0.6, abs=0.01))
    for values, rate in ((before, 0.8), (after, 0.6)):
        between, within = 0.4 * rate * (1 - rate), 0.6 * rate * (1 - rate)
        assert values.var() == pytest.approx(between + within / 4, rel=0.04)
    assert run.passed_before == run.before
    formula = Drop(0.8, 0.2, alike=0.4).variance(4)
    assert 0.9 * formula < (after - before).var() < formula, (
        "its covariance is a little below that of beta distributions"
    )


@pytest.mark.parametrize(("alike", "values"), [(1.0, {0.0, 1.0}), (0.0, {0.0, 0.25, 0.5, 0.75, 1.0})])
def test_samples_of_a_case_agree_wholly_or_not_at_all(alike, values):
    before, _, _ = drawn(Rehearsal(4000, 4, 0.5, 0.1, alike=alike))
    assert set(before.ravel().tolist()) == values
    assert before.var() == pytest.approx(0.25 if alike else 0.25 / 4, rel=0.1)


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_hardness_is_shared_between_the_runs_as_far_as_assumed(shared):
    before, after, _ = drawn(Rehearsal(20_000, 1, 0.5, 0.0, alike=1.0, shared=shared))
    assert np.corrcoef(before, after)[0, 1] == pytest.approx(shared, abs=0.03)


def test_cases_of_one_cluster_are_as_alike_as_assumed():
    plan = Rehearsal(20_000, 1, 0.5, 0.0, alike=1.0, cluster_size=2, correlation=0.6)
    before, _, (run,) = drawn(plan)
    assert run.clusters[:5] == [0, 0, 1, 1, 2]
    pairs = before.reshape(-1, 2)
    # two standard normal numbers with the correlation r are on one side with the chance 1/2 + asin(r) / π
    alike = (pairs[:, 0] == pairs[:, 1]).mean()
    assert alike == pytest.approx(0.5 + np.arcsin(0.6) / np.pi, abs=0.02)
    alone, _, _ = drawn(Rehearsal(20_000, 1, 0.5, 0.0, alike=1.0, cluster_size=2))
    pairs = alone.reshape(-1, 2)
    assert (pairs[:, 0] == pairs[:, 1]).mean() == pytest.approx(0.5, abs=0.02)


def test_scores_have_the_mean_and_the_deviation_that_are_assumed_and_pass_from_the_threshold_on():
    plan = Rehearsal(20_000, 1, 0.7, 0.1, alike=0.5, deviation=0.15, threshold=0.75)
    before, after, (run,) = drawn(plan)
    assert (before.mean(), after.mean()) == (pytest.approx(0.7, abs=0.01), pytest.approx(0.6, abs=0.01))
    assert (before.std(), after.std()) == (pytest.approx(0.15, rel=0.03), pytest.approx(0.15, rel=0.03))
    assert np.array_equal(run.passed_before, (before[0] >= 0.75).astype(float))
    assert np.array_equal(run.passed_after, (after[0] >= 0.75).astype(float))
    four, _, _ = drawn(Rehearsal(20_000, 4, 0.7, 0.1, alike=0.5, deviation=0.15))
    assert four.std() == pytest.approx(0.15 * sqrt(0.5 + 0.5 / 4), rel=0.03)


def test_the_same_plan_draws_the_same_runs_and_another_seed_others():
    plan = Rehearsal(20, 2, 0.8, 0.1)
    first, again, other = (next(plan.runs(1, seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert len(list(plan.runs(3))) == 3


def test_a_plan_of_which_nothing_else_is_said_has_cases_of_their_own_and_verdicts():
    plan = Rehearsal(4, 1, 0.8, 0.1)
    assert plan == Rehearsal(4, 1, 0.8, 0.1, 0.5, 0.5, 1, 0.0, None, 0.8)
    assert next(plan.runs(1)) == next(plan.runs(1, 0))
    assert next(plan.runs(1)).clusters == [0, 1, 2, 3]


def test_scores_that_deviate_as_far_as_any_can_are_0_or_1():
    before, _, _ = drawn(Rehearsal(2000, 1, 0.5, 0.0, deviation=0.5))
    assert ((before < 1e-6) | (before > 1 - 1e-6)).mean() > 0.99
    wider, _, _ = drawn(Rehearsal(2000, 1, 0.5, 0.0, deviation=0.9))
    assert np.array_equal(wider, before)


def test_a_rate_at_its_end_has_no_spread():
    before, after, _ = drawn(Rehearsal(200, 3, 1.0, 1.0))
    assert (set(before.ravel().tolist()), set(after.ravel().tolist())) == ({1.0}, {0.0})


def test_a_drop_that_is_certain_is_shown_with_as_many_cases_as_the_signs_need():
    certain = Drop(1.0, 1.0, alike=1.0)
    assert [rehearsed_power(cases, 1, certain) for cases in (5, 6, 11, 12)] == [0.0, 1.0, 1.0, 1.0]
    assert [rehearsed_power(cases, 1, certain, 0.01) for cases in (7, 8)] == [0.0, 1.0]


def test_the_signs_are_all_patterns_of_few_cases_but_for_flipping_all_and_some_of_many():
    few = _signs(11)
    assert few.shape == (11, 1024)
    assert set(few[-1].tolist()) == {1.0}
    assert len(set(map(tuple, few.T.tolist()))) == 1024
    assert _signs(12).shape == (12, 1024)
    assert set(_signs(12)[-1].tolist()) == {-1.0, 1.0}


@pytest.mark.parametrize(
    ("cases", "p"),
    [
        (6, 1 / 32),  # of all patterns
        (11, 1 / 1024),
        (12, 1 / 1025),  # none of the 1,024 drawn ones, and the observed one
    ],
)
def test_a_drop_is_shown_if_its_p_value_is_at_most_alpha(cases, p):
    certain = Drop(1.0, 1.0, alike=1.0)
    assert rehearsed_power(cases, 1, certain, p) == 1.0
    assert rehearsed_power(cases, 1, certain, 0.99 * p) == 0.0


def test_true_rates_are_at_the_middle_of_each_part_of_their_distribution():
    places, rates = _quantiles(0.5, 0.5)
    assert (places[0], places[-1], len(places)) == (0.5 / 256, 255.5 / 256, 256)
    assert np.allclose(rates, np.sin(np.pi * places / 2) ** 2)  # of Beta(½, ½)
    places, scores = _scores(0.5, sqrt(1 / 8))  # likewise
    assert (places[0], places[-1], len(places)) == (0.5 / 4096, 4095.5 / 4096, 4096)
    assert np.allclose(scores, np.sin(np.pi * places / 2) ** 2)
