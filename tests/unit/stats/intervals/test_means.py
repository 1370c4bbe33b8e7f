from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agentv.stats.difference import not_above_zero
from agentv.stats.intervals.means import bounded_mean_interval, mean_interval
from agentv.stats.intervals.proportion import unseen_share

scores = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def interval_of(values, level=0.95):
    return bounded_mean_interval(Counter((1, float(value)) for value in values), level)


def of_clusters(clusters, level=0.95):
    return bounded_mean_interval(Counter((len(one), float(sum(one))) for one in clusters), level)


@given(scores, st.sampled_from([0.8, 0.95]))
def test_the_mean_is_within_its_interval_and_that_within_0_and_1(values, level):
    low, high = interval_of(values, level)
    mean = sum(values) / len(values)
    assert 0 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1


@given(scores)
def test_scores_turned_round_have_the_interval_turned_round(values):
    low, high = interval_of(values)
    assert interval_of([1 - value for value in values]) == pytest.approx((1 - high, 1 - low), abs=1e-6)


@given(scores, st.randoms(use_true_random=False))
def test_the_order_of_clusters_does_not_matter(values, chance):
    kinds = list(Counter((1, value) for value in values).items())
    shuffled = kinds[:]
    chance.shuffle(shuffled)
    assert bounded_mean_interval(dict(kinds), 0.95) == bounded_mean_interval(dict(shuffled), 0.95)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.integers(2, 5))
def test_duplicating_every_case_as_one_cluster_changes_nothing(values, times):
    assert of_clusters([[value] * times for value in values]) == pytest.approx(interval_of(values), abs=1e-6)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("count", [2, 3, 10, 50, 300])
def test_the_reweighted_mean_is_below_the_lower_end_as_often_as_the_level_says(count, level):
    values = np.sort(np.random.default_rng(count).beta(2, 1, count))
    low, high = interval_of(values, level)
    below = not_above_zero(np.append(values - low, -low), np.ones(count + 1))
    above = not_above_zero(np.append((high - values)[::-1], high - 1), np.ones(count + 1))
    wanted = pytest.approx((1 - level) / 2, rel=0.02 if count > 3 else 0.1)
    assert (below, above) == (wanted, wanted)


@pytest.mark.parametrize(("passed", "count"), [(0, 10), (3, 20), (19, 20), (50, 100), (400, 400)])
def test_of_zeros_and_ones_it_is_clopper_and_pearsons(passed, count):
    low, high = interval_of([1.0] * passed + [0.0] * (count - passed))
    assert low == pytest.approx(stats.beta.ppf(0.025, passed, count - passed + 1) if passed else 0.0, abs=0.002)
    failed = count - passed
    assert high == pytest.approx(stats.beta.ppf(0.975, passed + 1, failed) if failed else 1.0, abs=0.002)


@pytest.mark.parametrize("count", [2, 5, 20, 1000])
def test_scores_that_are_all_alike_leave_room_for_what_nobody_saw(count):
    share = unseen_share(count)
    assert interval_of([0.9] * count) == pytest.approx((0.9 - share * 0.9, 0.9 + share * 0.1), abs=0.003)


def test_of_many_scores_it_is_students_with_cr2():
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(3000), 4)
    values = np.clip(rng.normal(0.6, 0.1, 3000)[clusters] + rng.normal(0, 0.1, 12000), 0, 1)
    by_t = mean_interval(values.tolist(), clusters.tolist())
    assert of_clusters(values.reshape(3000, 4)) == pytest.approx((by_t.low, by_t.high), abs=5e-4)


@pytest.mark.parametrize("count", [14, 20, 50])
def test_zeros_that_a_sample_lacks_are_allowed_for(count):
    """One case in twenty scores 0 and the others nearly 1: of 20 cases, 36 % of samples hold no such case."""
    chance = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        values = np.where(chance.random(count) < 0.05, 0.0, chance.uniform(0.8, 1, count))
        low, high = interval_of(values)
        held += low <= 0.855 <= high
    assert held >= 0.95 * 300
