"""Interval of the mean of scores in 0..1 that allows for scores the sample does not contain.

Twenty scores near 0.9 do not show that no case scores 0, and one such case in twenty lowers the mean by 0.045. So the
lower end takes one more cluster into account, with the score 0, and the upper end one with the score 1. The clusters
are reweighted at random, with weights that are uniform on the simplex. The reweighted mean is below the lower end with
probability (1 - level) / 2. A cluster weighs as much as its observations. The unseen cluster weighs as much as the
cluster of a random observation does on average.

- If all scores are equal, or all are 0 or 1, it is Clopper and Pearson's interval.
- With many clusters, it approaches Student's t interval.
- Inverting the scores (1 - score) mirrors the interval.

Betting intervals (I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", Journal of the
Royal Statistical Society B 86 (2024), 1-27) make the same allowance and have proven coverage, but are 15 to 50 % wider
at every number of cases (`benchmarks/coverage_levels.py scores`).

Sources: N. Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable", Mathematical Methods of Statistics 14 (2005), 451-467, which `stats.difference` uses too;
R. Lugannani, S. Rice, "Saddle point approximation for the distribution of the sum of independent random variables",
Advances in Applied Probability 12 (1980), 475-490, in Barndorff-Nielsen's form.

Plain Python: the summary of every run with scores uses it, and importing numpy would take longer than computing it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import copysign, erfc, exp, fsum, inf, isnan, lgamma, log, log1p, pi, sqrt

from agentv.stats.intervals.proportion import USUAL, quantile

MOST_KINDS = 128
"""Number of distinct clusters above which those with nearly the same mean are merged."""
FAR = 9.0
"""Standard normal quantile beyond which a probability is treated as 0 or 1."""

PRECISION = 1e-9
"""Precision of a mean."""

Kinds = Sequence[tuple[float, float, float]]
"""Size, sum and number of identical clusters."""


def bounded_mean_interval(clusters: Mapping[tuple[int, float], int], level: float) -> tuple[float, float]:
    """Confidence interval of the mean of all observations.

    Args:
        clusters: (size, sum of the values, each 0..1) → number of such clusters.
        level: confidence level, strictly between 0 and 1.
    """
    kinds = _gathered(sorted((size, total, float(number)) for (size, total), number in clusters.items()))
    count = fsum(size * number for size, _, number in kinds)
    unseen = fsum(size * size * number for size, _, number in kinds) / count
    mean = fsum(total * number for _, total, number in kinds) / count
    turned = [(size, size - total, number) for size, total, number in kinds]
    wanted = -quantile(level)
    return _lower(kinds, unseen, mean, wanted), 1 - _lower(turned, unseen, 1 - mean, wanted)


def _gathered(kinds: Kinds) -> Kinds:
    """The clusters merged to about `MOST_KINDS` kinds per size, with the total sum unchanged."""
    if len(kinds) <= MOST_KINDS:
        return kinds
    found: dict[tuple[float, int], list[tuple[float, float]]] = {}
    for size, total, number in kinds:
        found.setdefault((size, round(total / size * MOST_KINDS)), []).append((total * number, number))
    gathered = []
    for (size, _), alike in found.items():
        number = fsum(one for _, one in alike)
        gathered.append((size, fsum(total for total, _ in alike) / number, number))
    return gathered


def _lower(kinds: Kinds, unseen: float, mean: float, wanted: float) -> float:
    """The mean that the reweighted mean does not exceed with the probability of the normal quantile `wanted`."""
    counts = [*(number for _, _, number in kinds), 1.0]

    def excess(null: float) -> float:
        return _tail_quantile([*(total - null * size for size, total, _ in kinds), -null * unseen], counts) - wanted

    if mean <= PRECISION:
        return 0.0
    count = fsum(size * number for size, _, number in kinds)
    spread = sqrt(fsum((total - mean * size) ** 2 * number for size, total, number in kinds))
    step = 2 * (spread + mean * unseen) / count
    low, below, high, above = mean, excess(mean), mean, FAR
    while below > 0:
        high, above = low, below
        low -= step
        if low <= 0:
            low, below = 0.0, -FAR
        else:
            below = excess(low)
        step *= 2
    before = 0.0
    while high - low > PRECISION:
        steep = below > -FAR and above < FAR
        null = high - above * (high - low) / (above - below) if steep else (low + high) / 2
        found = excess(null)
        if abs(found) < 1e-6:
            return null
        again = steep and found * before > 0  # Illinois method: halve the value at an end that stays twice
        if found < 0:
            low, below, above = null, found, above / 2 if again else above
        else:
            high, above, below = null, found, below / 2 if again else below
        before = found
    return low


def _tail_quantile(values: Sequence[float], counts: Sequence[float]) -> float:
    """Normal quantile of the probability that Σ G · value is at most 0, for independent G ~ Gamma(count)."""
    lowest, highest = min(values), max(values)
    if lowest >= 0 or highest <= 0:
        return -FAR if lowest >= 0 else FAR
    left, right, point = 1 / lowest, 1 / highest, 0.0
    for _ in range(60):
        slope = curve = 0.0
        for value, count in zip(values, counts, strict=True):
            part = value / (1 - point * value)
            slope += count * part
            curve += count * part * part
        left, right = (point, right) if slope < 0 else (left, point)
        found = point - slope / curve
        if not left < found < right:
            found = (left + right) / 2
        before, point = point, found
        if abs(point - before) <= 1e-7 * abs(point):
            break
    height = curve = 0.0
    for value, count in zip(values, counts, strict=True):
        rest = 1 - point * value
        height += count * log(rest)
        curve += count * (value / rest) ** 2
    root = copysign(sqrt(max(0.0, 2 * height)), point)
    if abs(root) < 1e-4:  # the mean of the sum is 0
        return 0.0
    return max(-FAR, min(FAR, root + log(point * sqrt(curve) / root) / root))


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """A mean with its interval.

    Attributes:
        low, high: −inf and inf for a single cluster, which has no interval; JSON cannot represent them.
        clusters: number of clusters.
    """

    mean: float
    low: float
    high: float
    clusters: int


def mean_interval(values: Sequence[float], clusters: Sequence[Hashable], *, level: float = USUAL) -> MeanInterval:
    """The mean of all values, with an interval that is valid if values of one cluster are correlated.

    The variance is the cluster-robust CR2, which is unbiased for independent observations. The quantile is that of
    Student's t with Satterthwaite's degrees of freedom. For clusters of equal size, the result is the t interval of the
    cluster means with clusters − 1 degrees of freedom. R: `clubSandwich::conf_int(lm(y ~ 1), vcov = "CR2", cluster =
    g, test = "Satterthwaite")`.

    Source: R. M. Bell, D. F. McCaffrey, "Bias reduction in standard errors for linear regression with multi-stage
    samples", Survey Methodology 28 (2002), 169–181; J. E. Pustejovsky, E. Tipton, "Small-sample methods for
    cluster-robust variance estimation and hypothesis testing in fixed effects models", Journal of Business & Economic
    Statistics 36 (2018), 672–683.

    Args:
        values: the observations; at least one.
        clusters: cluster of each observation.
        level: confidence level, strictly between 0 and 1.

    Raises:
        ValueError: there are no values, `clusters` has another length, or `level` is out of range.
    """
    if not values or len(values) != len(clusters) or not 0 < level < 1:
        raise ValueError(f"no mean: {len(values)} values, {len(clusters)} clusters, level {level}")
    mean = sum(values) / len(values)
    gathered = _by_cluster(values, clusters, mean)
    if len(gathered) == 1:
        return MeanInterval(mean, -inf, inf, 1)
    variance, freedom = cr2(gathered, len(values))
    reach = sqrt(variance) * t_quantile(freedom, level)
    return MeanInterval(mean, mean - reach, mean + reach, len(gathered))


def cr2(clusters: Iterable[tuple[float, float, int]], count: float) -> tuple[float, float]:
    """The cluster-robust variance CR2 of a mean, and its degrees of freedom by Satterthwaite.

    For a mean, CR2 divides by one minus the share of a cluster. The degrees of freedom are (Σ P_gg)² / Σ P_gh² in
    closed form: P_gg is size / count², P_gh is √(b_g · b_h) / count³ with b = size² / (1 − size / count).

    Args:
        clusters: size, sum of the deviations from the overall mean, and number of such clusters; at least two clusters
            in all.
        count: number of all observations.
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


def _by_cluster(values: Sequence[float], clusters: Sequence[Hashable], mean: float) -> list[tuple[int, float, int]]:
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value - mean)
    return [(len(deviations), sum(deviations), 1) for deviations in members.values()]


_MANY = 400.0
"""Degrees of freedom from which the expansion around the normal quantile is accurate to 12 digits."""

_NORMAL = 1e6
"""Degrees of freedom from which the normal distribution is accurate to 7 digits, while `lgamma` loses precision."""


@lru_cache(maxsize=512)
def t_quantile(freedom: float, level: float = USUAL) -> float:
    """The two-sided quantile of Student's t: 2.262 for 9 degrees of freedom and 0.95.

    scipy: `t.ppf((1 + level) / 2, df)`.

    Args:
        freedom: degrees of freedom, above 0; Satterthwaite's are fractional.
        level: confidence level, strictly between 0 and 1.

    Raises:
        ValueError: `freedom` is not above 0, or `level` is out of range.
    """
    if isnan(freedom) or freedom <= 0:
        raise ValueError(f"degrees of freedom must be above 0, found {freedom}")
    start = _expanded(quantile(level), freedom)
    if freedom >= _MANY:
        return start
    low, high = 0.0, 1.0
    while t_tails(high, freedom) > 1 - level:
        low, high = high, high * 4
    found = start if low < start < high else (low + high) / 2
    for _ in range(200):
        excess = t_tails(found, freedom) - (1 - level)
        low, high = (found, high) if excess > 0 else (low, found)
        step = found + excess / (2 * _density(found, freedom))  # Newton's step, if it stays within the bounds
        after = step if low < step < high else (low + high) / 2
        if abs(after - found) <= 1e-13 * found:
            return after
        found = after
    return found


def t_tails(value: float, freedom: float) -> float:
    """The two-sided p-value of a t statistic: the probability that |T| is at least |value|.

    scipy: `2 * t.sf(abs(value), df)`.
    """
    square = value * value
    if square == inf:
        return 0.0
    if freedom > _NORMAL:
        return erfc(abs(value) / sqrt(2))
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square))


def _expanded(z: float, freedom: float) -> float:
    """Source: M. Abramowitz, I. A. Stegun, "Handbook of mathematical functions" (1964), equation 26.7.5."""
    square = z * z
    terms = (
        (square + 1) / 4,
        ((5 * square + 16) * square + 3) / 96,
        (((3 * square + 19) * square + 17) * square - 15) / 384,
        ((((79 * square + 776) * square + 1482) * square - 1920) * square - 945) / 92160,
    )
    return z * (1 + sum(term / freedom**power for power, term in enumerate(terms, 1)))


def _density(value: float, freedom: float) -> float:
    scale = lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - log(freedom * pi) / 2
    return exp(scale - (freedom + 1) / 2 * log1p(value * value / freedom))


_TINY = 1e-300


def incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularized incomplete beta function I_x(a, b); `rest` is 1 − x, which the caller knows more exactly.

    Source: the continued fraction of DLMF 8.17.22, summed by Lentz's method.
    """
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    upper, lower = 1.0, 1 - (a + b) * x / (a + 1)
    lower = 1 / (lower if abs(lower) > _TINY else _TINY)
    found = lower
    for step in range(1, 10_000):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        change = 1.0
        for term in (even, odd):
            lower = 1 + term * lower
            lower = 1 / (lower if abs(lower) > _TINY else _TINY)
            upper = 1 + term / upper
            upper = upper if abs(upper) > _TINY else _TINY
            change = lower * upper
            found *= change
        if abs(change - 1) < 1e-15:
            break
    return found
