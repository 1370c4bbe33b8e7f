"""A mean of observations that hang together: the samples of one case, or the cases of one customer, are no news each.

Ten samples of one case tell less than ten cases. What is averaged is every observation; what says how sure the mean is,
is how much the clusters differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import inf, sqrt

from agentv.stats.proportion import USUAL
from agentv.stats.unseen import alike_interval


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """A mean with its interval.

    Attributes:
        low, high: −inf and inf of one cluster only, of which nothing can be told; JSON has no word for them.
        clusters: how many there were.
    """

    mean: float
    low: float
    high: float
    clusters: int


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Of one cluster: how many observations, and the sum of their deviations from the mean of all."""

    size: int
    deviation: float


def mean_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    level: float = USUAL,
    bounds: tuple[float, float] | None = None,
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
        bounds: the least and the largest that a value can be: (0, 1) of scores, (−1, 1) of their differences. Where all
            values are alike, the interval then is the one of `unseen.alike_interval`, else it has no width.

    Raises:
        ValueError: there are no values, not as many clusters as values, or `level` is not inside 0..1.
    """
    if not values or len(values) != len(clusters) or not 0 < level < 1:
        raise ValueError(f"no mean: {len(values)} values, {len(clusters)} clusters, level {level}")
    mean = sum(values) / len(values)
    if bounds is not None and min(values) == max(values):
        count = len(set(clusters))
        return MeanInterval(values[0], *alike_interval(values[0], count, level, bounds), count)
    gathered = _gathered(values, clusters, mean)
    if len(gathered) == 1:
        return MeanInterval(mean, -inf, inf, 1)
    reach = _error(gathered, len(values)) * _quantile(_freedom(gathered, len(values)), level)
    return MeanInterval(mean, mean - reach, mean + reach, len(gathered))


def _gathered(values: Sequence[float], clusters: Sequence[Hashable], mean: float) -> list[_Cluster]:
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value - mean)
    return [_Cluster(len(deviations), sum(deviations)) for deviations in members.values()]


def _error(clusters: list[_Cluster], count: int) -> float:
    """The standard error of the mean: CR2, which for a mean only divides by one minus the share of a cluster."""
    return sqrt(sum(each.deviation**2 / (1 - each.size / count) for each in clusters)) / count


def _freedom(clusters: list[_Cluster], count: int) -> float:
    """Satterthwaite's degrees of freedom of CR2, for a mean: (Σ P_gg)² / Σ P_gh², in closed form.

    P_gg is size / count²; P_gh is √(b_g · b_h) / count³ with b = size² / (1 − size / count).
    """
    leverages = [each.size**2 / (1 - each.size / count) for each in clusters]
    beside = (sum(leverages) ** 2 - sum(one * one for one in leverages)) / count**6
    diagonal = sum(each.size**2 for each in clusters) / count**4
    return 1 / count**2 / (diagonal + beside)


def _quantile(freedom: float, level: float) -> float:
    from scipy.special import stdtrit  # 0.1 s; scipy.stats would take 0.6 s

    return float(stdtrit(freedom, (1 + level) / 2))
