"""Mean of dependent observations, such as the samples of one case or the cases of one customer.

Ten samples of one case tell less than ten cases. What is averaged is every observation; what says how sure the mean is,
is how much the clusters differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt

from agentv.stats.intervals.proportion import USUAL
from agentv.stats.intervals.student import t_quantile


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """A mean with its interval.

    Attributes:
        low, high: −inf and inf for a single cluster, which has no interval; JSON cannot represent them.
        clusters: how many there were.
    """

    mean: float
    low: float
    high: float
    clusters: int


def mean_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    level: float = USUAL,
) -> MeanInterval:
    """The mean of all values, with an interval that holds though values of one cluster are alike.

    The variance is the cluster-robust CR2 (exactly unbiased where observations are independent), the quantile that of
    Student's t with Satterthwaite's degrees of freedom; with clusters of one size that is the t interval of the
    clusters' means with clusters − 1 degrees of freedom. R: `clubSandwich::conf_int(lm(y ~ 1), vcov = "CR2", cluster =
    g, test = "Satterthwaite")`.

    Source: R. M. Bell, D. F. McCaffrey, "Bias reduction in standard errors for linear regression with multi-stage
    samples", Survey Methodology 28 (2002), 169–181; J. E. Pustejovsky, E. Tipton, "Small-sample methods for
    cluster-robust variance estimation and hypothesis testing in fixed effects models", Journal of Business & Economic
    Statistics 36 (2018), 672–683.

    Args:
        values: the observations; at least one.
        clusters: for each of them, what it belongs to.
        level: the confidence, inside 0..1.

    Raises:
        ValueError: there are no values, not as many clusters as values, or `level` is not inside 0..1.
    """
    if not values or len(values) != len(clusters) or not 0 < level < 1:
        raise ValueError(f"no mean: {len(values)} values, {len(clusters)} clusters, level {level}")
    mean = sum(values) / len(values)
    gathered = _gathered(values, clusters, mean)
    if len(gathered) == 1:
        return MeanInterval(mean, -inf, inf, 1)
    variance, freedom = cr2(gathered, len(values))
    reach = sqrt(variance) * t_quantile(freedom, level)
    return MeanInterval(mean, mean - reach, mean + reach, len(gathered))


def cr2(clusters: Iterable[tuple[float, float, int]], count: float) -> tuple[float, float]:
    """The cluster-robust variance CR2 of a mean, and Satterthwaite's degrees of freedom of it.

    For a mean CR2 only divides by one minus the share of a cluster. The degrees of freedom are (Σ P_gg)² / Σ P_gh² in
    closed form: P_gg is size / count², P_gh is √(b_g · b_h) / count³ with b = size² / (1 − size / count).

    Args:
        clusters: size, sum of the deviations from the mean of all, and how many clusters there are like that; two
            clusters at least.
        count: of all observations.
    """
    summed = leverage = leverages = sizes = 0.0
    for size, deviation, number in clusters:
        rest = 1 - size / count
        summed += number * deviation**2 / rest
        each = size**2 / rest
        leverage += number * each
        leverages += number * each * each
        sizes += number * size**2
    freedom = 1 / count**2 / (sizes / count**4 + (leverage**2 - leverages) / count**6)
    return summed / count**2, freedom


def _gathered(values: Sequence[float], clusters: Sequence[Hashable], mean: float) -> list[tuple[int, float, int]]:
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value - mean)
    return [(len(deviations), sum(deviations), 1) for deviations in members.values()]
