"""Agreement of agentv's formulas with statsmodels and scipy, over random input: the largest difference of each.

    pip install statsmodels && python benchmarks/agreement.py

CR2 with unequal clusters is compared with R's clubSandwich in tests/unit/stats/intervals/test_means.py.
"""

from __future__ import annotations

import random

import numpy as np
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from agentv.stats.intervals.means import cr2, t_quantile, t_tails
from agentv.stats.intervals.proportion import interval_at


def main() -> None:
    """Print a line for each formula."""
    print(f"Wilson at any effective size, proportion_confint(method='wilson'): {wilson():.1e}")
    variance, freedom = robust()
    print(f"CR2 of clusters of one size, OLS(cov_type='cluster') · G / (G − 1), relative: {variance:.1e}")
    print(f"its degrees of freedom, G − 1: {freedom:.1e}")
    quantile, tails = student()
    print(f"Student's quantile, scipy.stats.t.ppf, relative: {quantile:.1e}; its two tails, t.sf: {tails:.1e}")


def wilson() -> float:
    """The worst difference of a bound."""
    chance, worst = random.Random(1), 0.0
    for _ in range(1000):
        size, share = chance.uniform(1, 900), chance.random()
        ours, theirs = interval_at(share, size), proportion_confint(share * size, size, method="wilson")
        worst = max(worst, abs(ours[0] - theirs[0]), abs(ours[1] - theirs[1]))
    return worst


def robust() -> tuple[float, float]:
    """The worst relative difference of the variance, and that of the degrees of freedom."""
    chance, worst, other = np.random.default_rng(2), 0.0, 0.0
    for _ in range(200):
        clusters, size = int(chance.integers(3, 40)), int(chance.integers(1, 9))
        values, groups = chance.random(clusters * size), np.repeat(np.arange(clusters), size)
        fit = sm.OLS(values, np.ones(values.size)).fit(
            cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
        )
        expected = fit.cov_params()[0, 0] * clusters / (clusters - 1)
        deviations = values - values.mean()
        kinds = [(size, float(deviations[groups == one].sum()), 1) for one in range(clusters)]
        variance, freedom = cr2(kinds, values.size)
        worst, other = max(worst, abs(variance / expected - 1)), max(other, abs(freedom - (clusters - 1)))
    return worst, other


def student() -> tuple[float, float]:
    """The worst relative difference of the quantile, and the worst of the p-value."""
    chance, worst, other = random.Random(3), 0.0, 0.0
    for _ in range(2000):
        freedom, level = 10 ** chance.uniform(-0.3, 5), chance.uniform(0.5, 0.999)
        worst = max(worst, abs(t_quantile(freedom, level) / stats.t.ppf((1 + level) / 2, freedom) - 1))
        value = chance.uniform(0, 6)
        other = max(other, abs(t_tails(value, freedom) - 2 * stats.t.sf(value, freedom)))
    return worst, other


if __name__ == "__main__":
    main()
