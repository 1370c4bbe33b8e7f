"""Confidence sequence of a rate, watched while samples come in: valid however often one looks.

An ordinary interval holds for a number of samples that was fixed before. Looked at after every sample, until it says
what one waits for, it is wrong far more often than it claims. The bounds here hold at all times at once, so that one
may stop whenever they say enough (Ville, 1939; Robbins, "Statistical methods related to the law of the iterated
logarithm", Annals of Mathematical Statistics 41, 1970; Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform,
nonparametric, nonasymptotic confidence sequences", Annals of Statistics 49, 2021).

The evidence that a rate p lies above θ, after s passes and f failures, is the likelihood ratio

    E = ½ · ∫ q^s (1−q)^f dq / (1−θ) / (θ^s (1−θ)^f)  +  ½ · 1{f = 0} / θ^s        the integral from θ to 1

a bet on all rates above θ alike, and as much on a rate of 1: many cases always pass, or never. For every p ≤ θ it is a
nonnegative supermartingale that begins at 1, since (p·q/θ + (1−p)·(1−q)/(1−θ)) ≤ 1 for every q ≥ θ. So the chance that
it ever reaches 1/α is α at most. Below θ it is the same with passes and failures exchanged. Of the two errors that are
possible a rate allows only one, so that the chance of a wrong verdict is α at most.

The integral is one of the binomial distribution: with X the passes among s + f + 1 draws at θ,
∫ q^s (1−q)^f dq / ((1−θ) θ^s (1−θ)^f) = P(X ≤ s) / ((f + 1) · P(X = s)).
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, log
from typing import Literal

Side = Literal["above", "below"]


@lru_cache(maxsize=1 << 14)
def side(passed: int, failed: int, threshold: float, alpha: float) -> Side | None:
    """On which side of a threshold the rate lies, by samples so far; None where they do not tell yet.

    Asked after every sample, the first answer that is not None is wrong with a chance of `alpha` at most: `above` for a
    rate that is lower than the threshold, or `below` for one that is not.
    """
    if evidence_above(passed, failed, threshold) * alpha >= 1:
        return "above"
    return "below" if evidence_above(failed, passed, 1 - threshold) * alpha >= 1 else None


def evidence_for(found: Side, passed: int, failed: int, threshold: float) -> float:
    """The evidence that the rate lies on that side of the threshold."""
    if found == "above":
        return evidence_above(passed, failed, threshold)
    return evidence_above(failed, passed, 1 - threshold)


def evidence_above(passed: int, failed: int, threshold: float) -> float:
    """The evidence that a rate lies above a threshold, as in the module's docstring: 1 for none, ≥ 1/α for enough.

    A rate of 1 or more has nothing above it, and one of 0 everything but itself, which no sample can tell apart.
    """
    if threshold >= 1:
        return 0.0
    if threshold <= 0:
        return inf if passed else 1.0
    always = exp(-passed * log(threshold)) if not failed and -passed * log(threshold) < 700 else 0.0
    if not failed and not always:
        return inf
    return (_mixture(passed, failed, threshold) + always) / 2


def confidence_sequence(passed: int, failed: int, alpha: float) -> tuple[float, float]:
    """Bounds of a rate: each of them holds at all times with a chance of 1 − `alpha` at least.

    The lowest rate that the samples do not refute as too low, and the highest that they do not refute as too high.
    """
    return _lower(passed, failed, alpha), 1 - _lower(failed, passed, alpha)


@lru_cache(maxsize=4096)
def _lower(passed: int, failed: int, alpha: float) -> float:
    low, high = 0.0, passed / (passed + failed) if passed + failed else 0.0
    if not high:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        if evidence_above(passed, failed, middle) * alpha >= 1:
            low = middle
        else:
            high = middle
    return low


def _mixture(passed: int, failed: int, threshold: float) -> float:
    """P(X ≤ passed) / ((failed + 1) · P(X = passed)) for X of passed + failed + 1 draws at the threshold.

    Summed from the last term down, each by its ratio to the one above it, so that nothing is too small to be held.
    """
    draws, odds = passed + failed + 1, (1 - threshold) / threshold
    ratio = total = 1.0
    for number in range(passed, 0, -1):  # P(X = number − 1) / P(X = number)
        ratio *= number / (draws - number + 1) * odds
        total += ratio
        if total > _HUGE:
            return inf
        if ratio < total * _SMALL and number / (draws - number + 1) * odds < 1:
            break
    return total / (failed + 1)


_HUGE = 1e250
_SMALL = 1e-18
