"""Student's t distribution in plain Python: every run sums up with it, and importing scipy would take longer than that.

The tests hold it to `scipy.stats.t`.
"""

from __future__ import annotations

from functools import lru_cache
from math import erfc, exp, inf, isnan, lgamma, log, log1p, pi, sqrt

from agentv.stats.intervals.proportion import USUAL, quantile

_MANY = 400.0
"""Degrees of freedom from which the quantile's expansion around the normal one is right to 12 digits."""

_NORMAL = 1e6
"""Degrees of freedom from which the distribution is the normal one, to 7 digits; logarithms of gamma cancel there."""


@lru_cache(maxsize=512)
def t_quantile(freedom: float, level: float = USUAL) -> float:
    """The two-sided quantile of Student's t: 2.262 for 9 degrees of freedom and 0.95.

    scipy: `t.ppf((1 + level) / 2, df)`.

    Args:
        freedom: degrees of freedom, above 0; Satterthwaite's are fractional.
        level: the confidence, inside 0..1.

    Raises:
        ValueError: `freedom` is not above 0, or `level` not inside 0..1.
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
        step = found + excess / (2 * _density(found, freedom))  # Newton's, where it stays within what is known
        after = step if low < step < high else (low + high) / 2
        if abs(after - found) <= 1e-13 * found:
            return after
        found = after
    return found


def t_tails(value: float, freedom: float) -> float:
    """The two-sided p-value of a t statistic: the chance that |T| is at least |value|.

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
