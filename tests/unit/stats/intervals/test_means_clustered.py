from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agentv.stats.intervals.means import mean_interval

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
