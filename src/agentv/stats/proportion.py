"""How sure one can be of a share that was counted."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt

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
    return pooled_interval(successes, trials, trials, confidence)


def pooled_interval(successes: int, trials: int, independent: int, confidence: float = USUAL) -> tuple[float, float]:
    """Wilson's interval of a proportion over trials that hang together: as wide as that of fewer, independent ones.

    Source: an effective sample size (L. Kish, "Survey Sampling", 1965, section 8.2) in place of the sample size, as in
    E. L. Korn and B. I. Graubard, "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data", Survey Methodology 24 (1998), 193–201. So many clusters of trials are worth
    `independent` trials where those of a cluster always end alike; where they do not, the interval is too wide.

    Args:
        successes: of the trials.
        trials: that were counted.
        independent: how many of them are no repetition of another: 1 to `trials`.
        confidence: inside 0..1.

    Raises:
        ValueError: there are no trials, more successes or independent ones than trials, or `confidence` is not inside
            0..1.
    """
    if not 0 <= successes <= trials or not 1 <= independent <= trials:
        raise ValueError(f"no proportion: {successes} of {trials}, of which {independent} are independent")
    z = quantile(confidence)
    share = successes / trials
    scale = 1 + z * z / independent
    centre = (share + z * z / (2 * independent)) / scale
    reach = z * sqrt(share * (1 - share) / independent + z * z / (4 * independent * independent)) / scale
    # at the ends the formula gives exactly 0 and 1, up to rounding
    low = 0.0 if successes == 0 else max(0.0, centre - reach)
    high = 1.0 if successes == trials else min(1.0, centre + reach)
    return low, high


@lru_cache(maxsize=8)
def quantile(confidence: float) -> float:
    """The two-sided quantile of the standard normal distribution: 1.96 for 0.95."""
    if confidence == USUAL:
        return USUAL_QUANTILE
    from statistics import NormalDist  # 5 ms, and every run sums up at the usual confidence

    if not 0 < confidence < 1:
        raise ValueError(f"confidence lies between 0 and 1, found {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)
