"""Tests of whether two runs of the same cases differ, case by case: McNemar's, and sign-flip permutation.

Numpy is imported here: `agentv eval` imports this module only for runs that compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, comb

import numpy as np
from numpy.typing import NDArray

from agentv.stats.intervals.incomplete_beta import incomplete_beta

_COUNTED = 500
"""Throws of a coin up to which the ways are counted, so that a p-value is exactly what it is."""

Numbers = NDArray[np.float64]

ROUNDS = 10_000
EXACT_UP_TO = 20
"""Number of differences up to which all 2^20 sign patterns are tried: 10 ms."""
AT_ONCE = 4_000_000
"""Numbers that are drawn at once: 32 MB."""
MANY = 1000
"""Differences from which on it pays to draw how often each kind of them comes up, instead of each of them."""
ROUNDING = 1e-12
"""Two sums of the same numbers in another order differ by less than this part of the sum of their sizes."""


def mcnemar_exact(wins: int, losses: int) -> float:
    """The two-sided p-value of McNemar's exact test: could as many have changed one way, were both ways as likely?

    Twice the chance that a fair coin thrown wins + losses times shows its rarer side at most min(wins, losses) times,
    and at most 1; cases without a change say nothing. R: `binom.test(wins, wins + losses)$p.value`. It is the plain
    exact test, not the mid-p one: its error rate never passes alpha, at the price of some power.

    Source: Q. McNemar, "Note on the sampling error of the difference between correlated proportions or percentages",
    Psychometrika 12 (1947), 153–157; the exact form in M. W. Fagerland, S. Lydersen, P. Laake, "The McNemar test for
    binary matched-pairs data", BMC Medical Research Methodology 13:91 (2013).

    Args:
        wins: pairs that failed before and pass now.
        losses: pairs that passed before and fail now.

    Raises:
        ValueError: a count is negative.
    """
    if wins < 0 or losses < 0:
        raise ValueError(f"no counts: {wins} wins, {losses} losses")
    changed, rarer = wins + losses, min(wins, losses)
    if changed == 2 * rarer:
        return 1.0
    if changed <= _COUNTED:
        return min(1.0, 2 * sum(comb(changed, count) for count in range(rarer + 1)) / (1 << changed))
    # P(X ≤ k) of a fair coin thrown n times is the incomplete beta function at one half
    return min(1.0, 2 * incomplete_beta(changed - rarer, rarer + 1, 0.5, 0.5))


def permutation_test(differences: Sequence[float], *, seed: int = 0, rounds: int = ROUNDS) -> float:
    """The two-sided p-value of the paired permutation test: could the mean be as far from 0, were each sign a coin's?

    Under the null hypothesis the two runs of a pair may change places, which turns the sign of their difference. Up to
    20 differences other than 0 all ways are gone through, and the p-value is exact; above, `rounds` ways are drawn, and
    the p-value is (1 + as far) / (1 + rounds), which is never 0 and keeps the error rate. Differences of 0 say nothing.

    Source: R. A. Fisher, The Design of Experiments (1935), §21; B. Phipson, G. K. Smyth, "Permutation p-values should
    never be zero", Statistical Applications in Genetics and Molecular Biology 9 (2010), article 39.

    Args:
        differences: one number a case, candidate − base.
        seed: of PCG64; the same seed gives the same p-value.
        rounds: ways to draw, at least 1.

    Raises:
        ValueError: a difference is not a finite number, or there are no rounds.
    """
    values = _finite(differences)
    values = values[values != 0]
    if rounds < 1:
        raise ValueError(f"at least one round is required, found {rounds}")
    if not values.size:
        return 1.0
    least = abs(float(values.sum())) - ROUNDING * float(np.abs(values).sum())
    if values.size <= EXACT_UP_TO:
        return float(np.mean(np.abs(_all_sums(values)) >= least))
    as_far = sum(int(np.count_nonzero(np.abs(sums) >= least)) for sums in _drawn_sums(values, seed, rounds))
    return (1 + as_far) / (1 + rounds)


def _finite(differences: Sequence[float]) -> Numbers:
    values = np.asarray(differences, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("a difference is not a finite number")
    return values


def _all_sums(values: Numbers) -> Numbers:
    """The sums under all ways to put signs, the first one's kept: the other half only turns the signs of these."""
    sums = values[:1]
    for value in values[1:]:
        sums = np.concatenate((sums + value, sums - value))
    return sums


def _drawn_sums(values: Numbers, seed: int, rounds: int) -> Iterator[Numbers]:
    """Sums under drawn signs: raw bits of the generator, whose stream numpy never changes."""
    generator = np.random.PCG64(seed)
    if (found := _kinds(np.abs(values))) is not None:
        kinds, counts = found
        signs = np.random.Generator(generator).binomial(counts, 0.5, (rounds, kinds.size))
        yield (2 * signs - counts) @ kinds
        return
    total = values.sum()
    for drawn in _shares(rounds, values.size):
        words = generator.random_raw(ceil(drawn * values.size / 64))
        bits = np.unpackbits(words.view(np.uint8), count=drawn * values.size).reshape(drawn, values.size)
        yield 2 * (bits @ values) - total


def _kinds(values: Numbers) -> tuple[Numbers, NDArray[np.int64]] | None:
    """The values that occur, and how often; None where there are few, or nearly as many kinds as values.

    A million verdicts are three kinds.
    """
    if values.size < MANY:
        return None
    kinds, counts = np.unique(values, return_counts=True)
    return (kinds, counts) if kinds.size * ROUNDS <= AT_ONCE else None


def _shares(rounds: int, size: int) -> Iterator[int]:
    """The rounds, cut so that no share draws more numbers than memory should hold."""
    share = max(1, AT_ONCE // size)
    for begun in range(0, rounds, share):
        yield min(share, rounds - begun)
