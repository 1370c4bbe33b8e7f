from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from agentv.stats.intervals.design_effect import estimated_mean, estimated_rate
from agentv.stats.intervals.means import mean_interval
from agentv.stats.intervals.proportion import interval_at, wilson_interval

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
    # CR2 by its definition, one cluster at a time
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
    assert found.effective == pytest.approx(effective, rel=0.01)  # the difference is the weight of the half cluster
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
    assert estimated_mean(sums) == estimated_mean(shuffled) == estimated_mean(kinds)


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
    assert found.interval[1 if passed else 0] == (1.0 if passed else 0.0)


def test_nothing_is_no_rate():
    for estimated in (estimated_rate, estimated_mean):
        with pytest.raises(ValueError, match="nothing"):
            estimated([])


@given(st.integers(0, 30), st.integers(0, 30))
def test_single_scores_that_are_all_0_or_1_are_a_rate(passed, failed):
    assume(passed + failed)
    assert estimated_mean([(1, 1.0)] * passed + [(1, 0.0)] * failed) == estimated_rate({(1, 1): passed, (1, 0): failed})


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_numbers_of_a_rate_of_clusters_by_hand(level):
    sums = [(4, 4), (4, 2), (4, 0), (4, 4), (4, 3), (4, 1), (4, 4)]
    found = estimated_rate(sums, level)
    means = np.array([total / 4 for _, total in sums])
    mean, variance = means.mean(), means.var(ddof=1) / 7  # CR2 of clusters of one size
    shown = variance / (mean * (1 - mean) / 27)
    # four clusters with a failure carry information; those with a pass are six. The maximum effect is the size of a
    # cluster
    effect = shown + (4 - shown) * 0.5 / (0.5 + 4)
    few = (stats.t.ppf((1 + level) / 2, 27) / stats.t.ppf((1 + level) / 2, 6)) ** 2
    assert 1 < shown < 4
    assert (found.mean, found.observations, found.clusters) == (pytest.approx(mean), 28, 7)
    assert found.effective == pytest.approx(28 / effect * few)
    assert found.interval == pytest.approx(interval_at(mean, 28 / effect * few, level))


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


@given(rates, st.integers(2, 5))
def test_the_mean_of_equally_sampled_cases_is_the_rate_of_their_samples(sums, samples):
    """Cases given as shares of their samples have the same interval as when given as sums of samples."""
    cases = [(1, (total % (samples + 1)) / samples) for _, total in sums]
    of_samples = estimated_rate([(samples, round(share * samples)) for _, share in cases])
    of_cases = estimated_rate(cases, samples=float(samples))
    assert of_cases.mean == pytest.approx(of_samples.mean)
    assert of_cases.clusters == of_samples.clusters == of_cases.observations
    assert (of_cases.interval is None) == (of_samples.interval is None)
    if of_cases.interval is not None:
        assert of_cases.interval == pytest.approx(of_samples.interval)
