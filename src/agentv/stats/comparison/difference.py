"""Test of the mean difference of two runs over the same cases, of scores or of verdicts, clustered or not.

Numpy is imported by what this uses, so no module of `agentv eval` may import this one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, fsum, inf, log, log1p, sqrt

from agentv.stats.comparison.joint import JointTest, MeanTest, StudentT, Tail
from agentv.stats.comparison.sign_flips import SignFlips
from agentv.stats.comparison.winloss import WinLoss
from agentv.stats.intervals.clustered import cr2
from agentv.stats.intervals.design_effect import DRAWN
from agentv.stats.power.power import FEWEST

MANY = 2000
"""Number of clusters above which sign flips are omitted: their mean is normal enough."""

ROUNDING = 1e-9
"""Of a mean: less is rounding."""


@dataclass(frozen=True)
class Differences:
    """Differences of one measure, candidate less base, of paired cases.

    Attributes:
        values: one a case, -1..1.
        before: what the base had, 0..1.
        clusters: for each case, the cluster that it belongs to.
    """

    values: Sequence[float]
    before: Sequence[float]
    clusters: Sequence[Hashable]

    @cached_property
    def mean(self) -> float:
        """Mean difference of all cases."""
        return fsum(self.values) / len(self.values)

    @property
    def independent(self) -> int:
        """Number of clusters."""
        return len(self.flips.sums)

    @cached_property
    def flips(self) -> SignFlips:
        """Sums and sizes of the clusters, with the sign-flip test over them."""
        return SignFlips.of(self.values, self.clusters)

    @property
    def moved(self) -> int:
        """Clusters whose sum is not zero."""
        return sum(one != 0 for one in self.flips.sums)

    @property
    def error(self) -> float:
        """Standard error of the mean (CR2); 0 where all clusters moved alike. At least two clusters."""
        return sqrt(self._variance[0])

    @property
    def chance(self) -> float:
        """Two-sided p-value of the sign-flip test alone, without the bounds for unobserved cases."""
        return max(self._score_test.p(), self.flips.p()) if self.of_verdicts else self._student.p()

    @property
    def room(self) -> tuple[float, float]:
        """How far a case could fall and rise on average: the mean of the base, and what it lacks of 1."""
        loss = fsum(self.before) / len(self.before)
        return loss, 1 - loss

    @property
    def of_verdicts(self) -> bool:
        """Whether every case passed or failed, before and after, with nothing between."""
        return {0.0, 1.0}.issuperset(self.before) and {-1.0, 0.0, 1.0}.issuperset(self.values)

    @cached_property
    def test(self) -> JointTest | None:
        """The test of the mean difference and its interval; None of fewer than six clusters.

        Of verdicts it is Tango's score test, of scores Student's t with CR2; beside it the sign-flip test, which is
        exact for few cases and McNemar's test of verdicts, and for scores the tails. A value is rejected only if all
        reject it.
        """
        if self.independent < FEWEST:
            return None
        tests: list[MeanTest] = [self._score_test] if self.of_verdicts else [self._student, *self._tails]
        if self.independent <= MANY:
            tests.append(self.flips)
        return JointTest(self.mean, tests)

    @cached_property
    def _variance(self) -> tuple[float, float]:
        sums, sizes = self.flips.sums, self.flips.sizes
        clusters = ((size, total - size * self.mean, 1) for total, size in zip(sums, sizes, strict=True))
        return cr2(clusters, len(self.values))

    @property
    def _student(self) -> StudentT:
        variance, freedom = self._variance
        return StudentT(self.mean, sqrt(variance), freedom)

    @property
    def _tails(self) -> list[Tail]:
        means = [total / size for total, size in zip(self.flips.sums, self.flips.sizes, strict=True)]
        loss, gain = self.room
        tails = (Tail.of(means, self.mean, loss, -1), Tail.of(means, self.mean, gain, 1))
        return [tail for tail in tails if tail is not None]

    @property
    def _score_test(self) -> WinLoss:
        wins, losses = self.values.count(1.0), self.values.count(-1.0)
        ties = len(self.values) - wins - losses
        if self.independent == len(self.values):
            return WinLoss(wins, losses, ties)
        return WinLoss(wins, losses, ties, self._design_effect, self._variance[1])

    @property
    def _design_effect(self) -> float:
        """Variance of the mean over that of independent cases, at least 1.

        Few clusters that moved tell it badly, so it is drawn towards the largest possible, as in `design_effect`.
        """
        count = len(self.values)
        spread = fsum((one - self.mean) ** 2 for one in self.values) / (count - 1) / count
        largest = sum(size * size for size in self.flips.sizes) / count
        shown = max(1.0, self._variance[0] / spread) if spread else largest
        return shown + max(0.0, largest - shown) * DRAWN / (DRAWN + self.moved)


def fewest_for(mean: float, room: float, alpha: float) -> float:
    """Cases from which on the tail of `room` cannot explain a mean difference so far from what it is held against.

    Args:
        mean: the distance, 0..1.
        room: how far a case could move the other way on average, 0..1.
        alpha: of the two-sided test.
    """
    if mean <= ROUNDING:
        return inf
    return ceil(log(alpha / 2) / -log1p(mean / room)) if room > 0 else 0
