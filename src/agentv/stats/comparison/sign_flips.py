"""Sign-flip permutation test of a mean paired difference, at zero and at every other value, with its interval.

Numpy is imported here: `agentv eval` imports this module only for runs that compare.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np
from numpy.typing import NDArray

from agentv.stats.comparison.paired import AT_ONCE, ROUNDING, ROUNDS, mcnemar_exact, permutation_test

Numbers = NDArray[np.float64]

EXACT_UP_TO = 15
"""Number of clusters up to which all sign patterns are tried: 2^14, because flipping all signs changes nothing."""
FEW_KINDS = 50
"""Kinds of clusters, by sum and size, up to which it is faster to draw how many of each kind keep their sign."""
NEAR_ZERO = 1e-9
"""An end this close to zero is zero, which the interval then holds."""
STEPS = 60
"""Bisections; they leave nothing of a width of 2."""


@dataclass(frozen=True)
class SignFlips:
    """Sign-flip test of the mean difference of paired measurements that fall into clusters.

    Under the hypothesis that the mean difference is `null`, and that differences scatter around it symmetrically, each
    cluster's sum of (difference - null) is as likely with the opposite sign. The p-value is the share of sign patterns
    whose total lies at least as far from zero as the observed one.

    Up to 15 clusters all patterns are tried. Above, 10,000 are drawn, and p = (1 + as far) / (1 + drawn). At zero the
    p-value is that of `paired.permutation_test`, which ignores clusters that sum to zero and is exact for more of them.

    Source: R. A. Fisher, The Design of Experiments (1935), section 21; the interval by inverting the test: B. F. J.
    Manly, Randomization, Bootstrap and Monte Carlo Methods in Biology, 3rd ed. (2007), section 3.5.

    Attributes:
        sums: of each cluster, the sum of its differences.
        sizes: of each cluster, how many differences it holds, or the sum of their weights.
    """

    sums: Sequence[float]
    sizes: Sequence[float]

    @classmethod
    def of(cls, differences: Sequence[float], clusters: Sequence[Hashable]) -> SignFlips:
        """Build the test from differences and the cluster of each; both have the same length, at least 1."""
        known: dict[Hashable, int] = {}
        numbers = array("I", (known.setdefault(cluster, len(known)) for cluster in clusters))
        sizes, sums = array("I", bytes(4 * len(known))), array("d", bytes(8 * len(known)))
        for number in numbers:
            sizes[number] += 1
        members: dict[int, list[float]] = {}  # of clusters that hold several; there may be 100,000 that hold one
        for difference, number in zip(differences, numbers, strict=True):
            if sizes[number] == 1:
                sums[number] = difference
            else:
                members.setdefault(number, []).append(difference)
        for number, cases in members.items():
            sums[number] = fsum(cases)
        return cls(sums, sizes)

    @property
    def mean(self) -> float:
        """Mean of all differences."""
        return fsum(self.sums) / sum(self.sizes)

    def p(self, null: float = 0.0) -> float:
        """Two-sided p-value of the hypothesis that the mean difference is `null`."""
        return self._at_zero if null == 0 else self._drawn(null)

    def interval(self, level: float) -> tuple[float, float]:
        """Confidence interval of the mean difference, within -1..1: the values that the test does not reject.

        Its ends agree with the p-value at zero: the interval holds zero exactly when that p-value is above 1 - level.
        """
        mean, alpha = self.mean, 1 - level
        holds_zero = self.p(0.0) > alpha
        low = self._end(mean, -1.0, alpha, holds_zero=holds_zero)
        high = self._end(mean, 1.0, alpha, holds_zero=holds_zero)
        return low, high

    @cached_property
    def _at_zero(self) -> float:
        steps = {abs(one) for one in self.sums} - {0.0}
        if len(steps) <= 1:  # the signs alone count
            return mcnemar_exact(sum(one > 0 for one in self.sums), sum(one < 0 for one in self.sums))
        return permutation_test(self.sums)

    def _drawn(self, null: float) -> float:
        totals, spans = self._patterns
        observed = abs(fsum(self.sums) - null * sum(self.sizes))
        nearest = observed - ROUNDING * (fsum(map(abs, self.sums)) + abs(null) * sum(self.sizes))
        as_far = int(np.count_nonzero(np.abs(totals - null * spans) >= nearest))
        if len(self.sums) <= EXACT_UP_TO:
            return as_far / totals.size
        if self._orientation == 0:  # drawn patterns are not symmetric, but what they stand for is
            as_far = max(as_far, int(np.count_nonzero(np.abs(totals + null * spans) >= nearest)))
        return (1 + as_far) / (1 + totals.size)

    def _end(self, mean: float, outermost: float, alpha: float, *, holds_zero: bool) -> float:
        """End of the interval between the mean, which no test rejects, and the outermost value.

        Zero is a point whose answer is known: the search keeps to the side of it that agrees.
        """
        inside, outside = mean, outermost
        if min(mean, outermost) < 0 < max(mean, outermost):
            inside, outside = (0.0, outside) if holds_zero else (inside, 0.0)
        if inside == outside or (outside == outermost and self._drawn(outside) > alpha):
            return outside
        found = _boundary(lambda null: self._drawn(null) > alpha, inside, outside)
        return 0.0 if holds_zero and abs(found) < NEAR_ZERO else found

    @cached_property
    def _orientation(self) -> int:
        """1 or -1: swapping the two runs turns it; 0: the swapped clusters are the same clusters."""
        own = sorted(zip(self.sums, self.sizes, strict=True))
        swapped = sorted((-total, size) for total, size in own)
        total = fsum(self.sums)
        return ((total, own) > (-total, swapped)) - ((total, own) < (-total, swapped))

    @cached_property
    def _patterns(self) -> tuple[Numbers, Numbers]:
        """For each sign pattern, the signed total of the sums and that of the sizes."""
        sums, sizes = np.array(self.sums), np.array(self.sizes, dtype=np.float64)
        if sums.size <= EXACT_UP_TO:
            signs = _all_signs(sums.size)
            return signs @ sums, signs @ sizes
        side = -1.0 if self._orientation < 0 else 1.0  # swapping the two runs draws the same patterns
        totals, spans = _drawn_totals(side * sums, sizes)
        return side * totals, spans


def _boundary(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where what holds inside ceases to hold; a value that was seen not to hold, or nearly one."""
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        if middle in {inside, outside}:
            break
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


def _all_signs(count: int) -> Numbers:
    """Every sign pattern with the first sign kept, one a row."""
    numbers = np.arange(2 ** (count - 1))[:, None]
    turned = (numbers >> np.arange(count)) & 1
    return np.asarray(1.0 - 2.0 * turned, dtype=np.float64)


def _drawn_totals(sums: Numbers, sizes: Numbers) -> tuple[Numbers, Numbers]:
    """Totals under drawn signs; of few kinds of clusters, by how many of each kind keep their sign."""
    both = np.stack((sums, sizes))
    kinds, counts = np.unique(both, axis=1, return_counts=True)
    generator = np.random.Generator(np.random.PCG64(0))
    if counts.size <= FEW_KINDS:
        signs = generator.binomial(counts, 0.5, (ROUNDS, counts.size))
        totals = kinds @ (2.0 * signs - counts).T
        return totals[0], totals[1]
    share = max(1, AT_ONCE // sums.size)
    parts = []
    for begin in range(0, ROUNDS, share):
        bits = generator.integers(0, 2, (sums.size, min(share, ROUNDS - begin)), dtype=np.uint8)
        parts.append(both @ (2.0 * bits - 1.0))
    totals = np.concatenate(parts, axis=1)
    return totals[0], totals[1]
