from collections import Counter
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betainc

from agentv.stats.difference import not_above_zero
from agentv.stats.intervals.means import bounded_mean_interval, incomplete_beta, mean_interval, t_quantile, t_tails
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
    """One case in twenty scores 0 and the others nearly 1: 36% of samples of 20 cases contain no such case."""
    chance = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        low, high = interval_of(np.where(chance.random(count) < 0.05, 0.0, chance.uniform(0.8, 1, count)))
        held += low <= 0.855 <= high
    assert held >= 0.95 * 300


VALUES = (0.9, 0.8, 1, 0.4, 0.5, 0.7, 0.2, 1, 1, 0.6, 0.3)
CLUSTERS = tuple("aaabbcdddde")


@pytest.mark.parametrize(
    ("level", "low", "high"), [(0.95, 0.37400824697817, 0.971446298476375), (0.9, 0.452179256505033, 0.893275288949513)]
)
def test_agrees_with_rs_club_sandwich(level, low, high):
    # R 4.2.2, clubSandwich 0.5.8: f <- lm(y ~ 1); V <- vcovCR(f, cluster = g, type = "CR2")
    # conf_int(f, vcov = V, test = "Satterthwaite", level = level); 2.97029702970297 degrees of freedom
    found = mean_interval(VALUES, CLUSTERS, level=level)
    assert (found.mean, found.clusters) == (pytest.approx(0.672727272727273), 5)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))


def test_observations_of_their_own_give_students_t():
    # R: t.test(c(1, 2, 3, 4, 9))$conf.int
    found = mean_interval((1, 2, 3, 4, 9), range(5))
    assert (found.low, found.high) == (pytest.approx(-0.0671405455482171), pytest.approx(7.66714054554822))


@given(st.lists(st.tuples(*[st.floats(-1, 1)] * 3), min_size=2, max_size=9))
def test_clusters_of_one_size_give_students_t_of_their_means(rows):
    found = mean_interval(
        [value for row in rows for value in row], [place for place, row in enumerate(rows) for _ in row]
    )
    means = [sum(row) / 3 for row in rows]
    reach = stats.t.ppf(0.975, len(rows) - 1) * np.std(means, ddof=1) / sqrt(len(rows))
    assert (found.high - found.low) / 2 == pytest.approx(reach, abs=1e-9)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=3, max_size=20))
def test_the_closed_form_is_the_matrix_form(drawn):
    values, clusters = np.array([value for value, _ in drawn]), np.array([cluster for _, cluster in drawn])
    names = sorted(set(clusters.tolist()))
    if len(names) == 1:
        return
    count = len(values)
    centring = np.eye(count) - np.ones((count, count)) / count
    columns = []
    for name in names:
        mine = clusters == name
        roots, vectors = np.linalg.eigh(centring[np.ix_(mine, mine)])
        adjusted = vectors @ np.diag(roots**-0.5) @ vectors.T @ np.ones(mine.sum()) / count
        columns.append(centring[:, mine] @ adjusted)
    inner = np.array(columns) @ np.array(columns).T
    freedom = np.trace(inner) ** 2 / (inner**2).sum()
    error = sqrt(sum((column @ values) ** 2 for column in columns))
    found = mean_interval(values.tolist(), clusters.tolist())
    assert found.high - found.mean == pytest.approx(error * stats.t.ppf(0.975, freedom), abs=1e-9)


@pytest.mark.parametrize(
    ("values", "clusters", "level"),
    [((), (), 0.95), ((1,), "ab", 0.95), *(((1, 2), "ab", level) for level in (0, 1, 95))],
)
def test_refuses_what_has_no_mean(values, clusters, level):
    with pytest.raises(ValueError, match="no mean"):
        mean_interval(values, clusters, level=level)


FREEDOMS = (0.3, 1, 1.5, 2, 2.7, 5, 9, 30, 199.5, 399.9, 400, 1000, 1e5, 1e8)


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("value", [0, 0.01, -0.5, 1.96, 5, 40, 1e200])
def test_the_p_value_is_scipys(freedom, value):
    digits = 1e-5 if freedom > 1e6 else 1e-7
    assert t_tails(value, freedom) == pytest.approx(2 * stats.t.sf(abs(value), freedom), rel=digits, abs=1e-14)


@given(st.floats(0.5, 390), st.floats(0.01, 0.999))
def test_the_two_are_inverse(freedom, level):
    assert t_tails(t_quantile(freedom, level), freedom) == pytest.approx(1 - level, rel=1e-7)


@pytest.mark.parametrize(("freedom", "level"), [(0, 0.95), (-1, 0.95), (float("nan"), 0.95), (3, 0), (3, 1)])
def test_what_is_no_distribution(freedom, level):
    with pytest.raises(ValueError, match=r"freedom|confidence"):
        t_quantile(freedom, level)


def test_it_is_scipys():
    for a, b in ((1, 1), (0.5, 3), (40, 7), (500, 501), (50_000, 49_800), (4, 2_000_000)):
        for x in (0.0, 1e-9, 0.02, 0.3, 0.5, 0.77, 1.0):
            assert incomplete_beta(a, b, x, 1 - x) == pytest.approx(betainc(a, b, x), rel=1e-7, abs=1e-12), (a, b, x)
