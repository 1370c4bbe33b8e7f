"""The incomplete beta function in plain Python: every run needs it, and importing scipy would take longer than that.

The tests hold it to `scipy.special.betainc`.
"""

from __future__ import annotations

from math import exp, lgamma, log

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
