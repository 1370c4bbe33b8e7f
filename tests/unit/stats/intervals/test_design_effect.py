from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from agentv.stats.intervals.clustered import mean_interval
from agentv.stats.intervals.design_effect import (
    ClusterSum,
    Estimate,
    estimated_mean,
    estimated_mean_alone,
    estimated_rate,
)
from agentv.stats.intervals.proportion import interval_at, wilson_interval
from agentv.stats.intervals.zero_variance import alike_interval

rates = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)).map(lambda pair: (pair[0], min(pair))), min_size=1)


def test_conversations_that_pass_or_fail_as_a_whole():
    found = estimated_rate([(10, 10)] * 7 + [(10, 0)] * 3)
    assert (found.mean, found.observations, found.clusters) == (0.7, 100, 10)
    assert found.interval == (pytest.approx(0.347, abs=0.001), pytest.approx(0.911, abs=0.001))
    assert wilson_interval(70, 100) == (pytest.approx(0.604, abs=0.001), pytest.approx(0.781, abs=0.001))


@given(st.integers(1, 400), st.data())
def test_cases_that_stand_alone_have_wilsons_interval(count, data):
    passed = data.draw(st.integers(0, count))
    found = estimated_rate([(1, 1)] * passed + [(1, 0)] * (count - passed))
    assert found.interval == wilson_interval(passed, count)
    assert (found.effective, found.clusters) == (count, count)


def test_it_is_korn_and_graubards_where_many_clusters_tell():
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 9, 200)
    totals = rng.binomial(sizes, rng.beta(2, 1, 200))
    values = np.concatenate([np.r_[np.ones(t), np.zeros(s - t)] for s, t in zip(sizes, totals, strict=True)])
    clusters = np.repeat(np.arange(200), sizes)
    mean, count = values.mean(), values.size
    # CR2 by its definition, one cluster after the other
    robust = (
        sum((values[clusters == each] - mean).sum() ** 2 / (1 - (clusters == each).mean()) for each in range(200))
        / count**2
    )
    by_t = mean_interval(values.tolist(), clusters.tolist())
    freedom_reach = (by_t.high - by_t.mean) / sqrt(robust)
    effective = (
        mean * (1 - mean) / (robust * (count - 1) / count) * (stats.t.ppf(0.975, count - 1) / freedom_reach) ** 2
    )
    found = estimated_rate(zip(sizes.tolist(), totals.tolist(), strict=True))
    assert found.effective == pytest.approx(effective, rel=0.01)  # what is left is the half cluster's weight
    low, high = interval_at(mean, effective)
    assert found.interval == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


@given(rates)
def test_an_interval_holds_its_rate_and_is_never_narrower_than_that_of_independent_trials(sums):
    found = estimated_rate(sums)
    if found.interval is None:
        assert (len(sums), found.effective) == (1, 0)
        return
    low, high = found.interval
    assert 0 <= low <= found.mean <= high <= 1
    assert found.effective <= found.observations


@given(rates, st.randoms(use_true_random=False))
def test_the_order_does_not_matter_and_neither_does_the_form(sums, chance):
    shuffled = list(sums)
    chance.shuffle(shuffled)
    kinds = {kind: sums.count(kind) for kind in sums}
    assert estimated_rate(sums) == estimated_rate(shuffled) == estimated_rate(kinds)
    assert estimated_mean(sums, 0.1) == estimated_mean(shuffled, 0.1) == estimated_mean(kinds, 0.1)


@given(rates)
def test_a_rate_mirrors_itself(sums):
    found = estimated_rate(sums)
    mirrored = estimated_rate([(size, size - total) for size, total in sums])
    if found.interval is not None and mirrored.interval is not None:
        low, high = found.interval
        assert mirrored.interval == (pytest.approx(1 - high, abs=1e-9), pytest.approx(1 - low, abs=1e-9))


@pytest.mark.parametrize("passed", [True, False])
def test_where_all_ended_alike_each_cluster_counts_once(passed):
    found = estimated_rate([(5, 5.0 if passed else 0.0)] * 40)
    assert 30 < found.effective <= 40
    assert found.interval is not None
    assert found.interval[1 if passed else 0] == (1.0 if passed else 0.0)


def test_one_failure_among_them_does_not_make_it_certain():
    alike, one = estimated_rate([(10, 10)] * 10), estimated_rate([(10, 10)] * 9 + [(10, 9)])
    assert alike.interval is not None
    assert one.interval is not None
    assert one.interval[0] < 0.94
    assert one.effective < 60


def test_one_cluster_tells_nothing():
    assert estimated_rate([(5, 3)]).interval is None
    assert estimated_mean([(5, 3.3)]) == Estimate(pytest.approx(0.66), None, 5, 1, 0.0)
    assert estimated_rate([(5, 3)]) == Estimate(0.6, None, 5, 1, 0.0)
    assert estimated_rate([ClusterSum(1, 1)]).interval == wilson_interval(1, 1)


def test_nothing_is_no_rate():
    for estimated in (estimated_rate, estimated_mean):
        with pytest.raises(ValueError, match="nothing"):
            estimated([])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_a_mean_is_within_its_interval_and_that_within_0_and_1(values):
    found = estimated_mean([(1, value) for value in values], sum(value * value for value in values))
    assert found.interval is not None
    low, high = found.interval
    assert 0 <= low <= found.mean + 1e-12
    assert found.mean - 1e-12 <= high <= 1


def test_of_many_scores_it_is_students_with_cr2():
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(300), 4)
    values = np.clip(rng.normal(0.6, 0.1, 300)[clusters] + rng.normal(0, 0.1, 1200), 0, 1)
    by_t = mean_interval(values.tolist(), clusters.tolist())
    sums = [(4, float(values[clusters == each].sum())) for each in range(300)]
    found = estimated_mean(sums, float((values**2).sum()))
    assert found.interval == (pytest.approx(by_t.low, abs=5e-4), pytest.approx(by_t.high, abs=5e-4))


@given(rates)
def test_scores_that_are_all_0_or_1_are_a_rate(sums):
    assume(sum(total for _, total in sums) > 0)
    total = sum(total for _, total in sums)
    assert estimated_mean(sums, float(total)) == estimated_rate(sums)


def test_scores_that_are_all_alike_leave_room_for_what_nobody_saw():
    found = estimated_mean([(1, 0.9)] * 20, 20 * 0.81)
    assert found.interval is not None
    assert found.interval[0] < 0.88
    assert found.interval[1] > 0.91


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_numbers_of_a_rate_of_clusters_by_hand(level):
    sums = [(4, 4), (4, 2), (4, 0), (4, 4), (4, 3), (4, 1), (4, 4)]
    found = estimated_rate(sums, level)
    means = np.array([total / 4 for _, total in sums])
    mean, variance = means.mean(), means.var(ddof=1) / 7  # CR2 of clusters of one size
    shown = variance / (mean * (1 - mean) / 27)
    # clusters with a failure tell: four; those with a pass are six. The largest effect is the size of a cluster
    effect = shown + (4 - shown) * 0.5 / (0.5 + 4)
    few = (stats.t.ppf((1 + level) / 2, 27) / stats.t.ppf((1 + level) / 2, 6)) ** 2
    assert 1 < shown < 4
    assert (found.mean, found.observations, found.clusters) == (pytest.approx(mean), 28, 7)
    assert found.effective == pytest.approx(28 / effect * few)
    assert found.interval == pytest.approx(interval_at(mean, 28 / effect * few, level))


def test_clusters_that_differ_less_than_chance_count_as_many_as_their_observations_at_most():
    found = estimated_rate([(2, 1)] * 400)
    # an effect of 1 at least, drawn towards 2 with half a cluster against 400
    assert found.effective == pytest.approx(
        800 / (1 + 0.5 / 400.5) * (stats.t.ppf(0.975, 799) / stats.t.ppf(0.975, 399)) ** 2
    )
    unlike = estimated_rate([(6, 6), (1, 0), (1, 0)])
    assert unlike.effective < 3


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_numbers_of_a_mean_of_clusters_by_hand(level):
    totals = [2.0, 1.25, 0.5, 2.5, 1.75, 0.25]
    found = estimated_mean([(3, total) for total in totals], 5.0, level)
    means = np.array(totals) / 3
    mean = means.mean()
    largest = mean * (1 - mean) * 3 / 17
    variance = (means.var(ddof=1) / 6 * 6 + largest * 0.5) / 6.5
    quantiles = stats.norm.ppf((1 + level) / 2) / stats.t.ppf((1 + level) / 2, 5)
    effective = mean * (1 - mean) / variance * quantiles**2
    assert found == Estimate(
        pytest.approx(mean), pytest.approx(interval_at(mean, effective, level)), 18, 6, pytest.approx(effective)
    )


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), min_size=1, max_size=30), st.sampled_from([0.8, 0.95]))
def test_scores_that_stand_alone_need_but_their_number_their_sum_and_their_squares(values, level):
    total, squares = sum(values), sum(value * value for value in values)
    found = estimated_mean_alone(len(values), total, squares, level)
    expected = estimated_mean([(1, value) for value in values], squares, level)
    for name in ("mean", "observations", "clusters", "effective"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-6), name
    if expected.interval is None:
        assert found.interval is None
    else:
        assert found.interval == pytest.approx(expected.interval, abs=1e-9)


def test_scores_that_are_all_alike_have_the_interval_of_what_nobody_saw():
    for found in (estimated_mean([(2, 1.8)] * 20, 40 * 0.81), estimated_mean_alone(20, 18.0, 20 * 0.81)):
        assert found.interval == pytest.approx(alike_interval(0.9, 20, 0.95, (0.0, 1.0)))
        assert (found.effective, found.clusters) == (20.0, 20)
    nearly = estimated_mean_alone(20, 18.0, 20 * 0.81 + 1e-3)
    assert nearly.interval[0] > alike_interval(0.9, 20, 0.95, (0.0, 1.0))[0]


def test_scores_whose_squares_are_not_known_are_no_rate():
    sums = [(2, 1.0), (2, 2.0), (2, 0.0), (2, 1.0)]
    assert estimated_mean(sums, 4.0) == estimated_rate(sums)
    assert estimated_mean(sums).interval != estimated_rate(sums).interval


def test_one_score_tells_nothing_and_no_score_is_no_mean():
    assert estimated_mean_alone(1, 0.4, 0.16) == Estimate(0.4, None, 1, 1, 0.0)
    assert estimated_mean_alone(1, 1.0, 1.0) == estimated_rate([(1, 1)])
    with pytest.raises(ValueError, match="nothing"):
        estimated_mean_alone(0, 0.0, 0.0)


def test_clusters_without_observations_are_none():
    assert estimated_rate({(2, 1): 3, (0, 0): 5, (4, 4): 0}) == estimated_rate([(2, 1)] * 3)


ROUNDS = 300


@pytest.mark.parametrize(("rate", "alike"), [(0.5, 1.0), (0.9, 0.5), (0.3, 0.1), (0.05, 0.5)])
def test_it_covers_where_wilson_over_trials_does_not(rate, alike):
    rng = np.random.default_rng(11)
    held = naive = 0
    for _ in range(ROUNDS):
        own = rng.beta(rate * (1 / alike - 1), (1 - rate) * (1 / alike - 1), 40) if alike < 1 else rng.random(40) < rate
        totals = rng.binomial(10, own)
        low, high = estimated_rate([(10, int(total)) for total in totals]).interval or (0.0, 1.0)
        held += low <= rate <= high
        low, high = wilson_interval(int(totals.sum()), 400)
        naive += low <= rate <= high
    assert held / ROUNDS >= 0.915
    assert naive / ROUNDS < 0.9
