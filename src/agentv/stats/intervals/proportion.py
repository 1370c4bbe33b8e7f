"""Confidence interval of a proportion, and what cases that were all alike say of the others."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log, sqrt

USUAL = 0.95


USUAL_QUANTILE = 1.9599639845400536
"""What `statistics.NormalDist` gives for it, to the last bit."""


def wilson_interval(successes: int, trials: int, confidence: float = USUAL) -> tuple[float, float]:
    """Wilson's score interval of a proportion, without continuity correction: (low, high), both in 0..1.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927),
    209–212; method 3 in R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in
    Medicine 17 (1998), 857–872, whose table I the tests hold it to.

    Raises:
        ValueError: there are no trials, more successes than trials, or `confidence` is not inside 0..1.
    """
    if not 0 <= successes <= trials or not trials:
        raise ValueError(f"no proportion: {successes} of {trials}")
    return interval_at(successes / trials, trials, confidence)


def interval_at(share: float, effective: float, confidence: float = USUAL) -> tuple[float, float]:
    """Wilson's interval of a share with this effective sample size: (low, high), both in 0..1.

    Args:
        share: 0..1; a rate, or the mean of scores that lie there.
        effective: the effective sample size, above 0; it need not be whole.
        confidence: inside 0..1.
    """
    z = quantile(confidence)
    scale = 1 + z * z / effective
    centre = (share + z * z / (2 * effective)) / scale
    reach = z * sqrt(share * (1 - share) / effective + z * z / (4 * effective * effective)) / scale
    # at the ends the formula gives exactly 0 and 1, up to rounding
    low = 0.0 if share <= 0 else max(0.0, centre - reach)
    high = 1.0 if share >= 1 else min(1.0, centre + reach)
    return low, high


@lru_cache(maxsize=8)
def quantile(confidence: float) -> float:
    """The two-sided quantile of the standard normal distribution: 1.96 for 0.95."""
    if confidence == USUAL:
        return USUAL_QUANTILE
    from statistics import NormalDist  # 5 ms, and every run sums up at the usual confidence

    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, found {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def unseen_share(seen: int, level: float = USUAL) -> float:
    """The largest share of other cases that fits with `seen` cases which were all alike: 1 − ((1 − level)/2)^(1/seen).

    It is the upper end of the exact interval of 0 of `seen`; at level 0.95 about 3.7 divided by `seen`. R:
    `binom.test(0, seen, conf.level = level)$conf.int[2]`.

    Source: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934), 404–413.
    """
    if seen < 1:
        raise ValueError(f"nothing was seen: {seen}")
    return float(1 - ((1 - level) / 2) ** (1 / seen))


def cases_for_share(share: float, level: float = USUAL) -> int:
    """How many cases must be seen, all alike, until at most such a share of others can be unlike them.

    Args:
        share: above 0; from 1 on one case will do.
        level: as of `unseen_share`, which this turns around.
    """
    return 1 if share >= 1 else ceil(log((1 - level) / 2) / log(1 - share))
