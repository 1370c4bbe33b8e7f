"""Several tests of one mean difference at once: a value is rejected only if every one of them rejects it.

Each test by itself has settings in which its error rate is too high: Student's t where differences are few or skewed,
sign flips where they are skewed, both where a rare large difference is missing from the sample. Together they hold
alpha in all of them, and the interval is that of the joint test, so that the two never disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from agentv.lazy_dataclass import dataclass
from agentv.stats.intervals.student import t_quantile, t_tails


class MeanTest(Protocol):
    """A test of the mean difference whose interval holds exactly the values that it does not reject."""

    def p(self, null: float = 0.0) -> float:
        """Two-sided p-value of the hypothesis that the mean difference is `null`."""

    def interval(self, level: float) -> tuple[float, float]:
        """The values that the test does not reject at 1 - level: (low, high)."""


@dataclass(frozen=True, slots=True)
class JointTest:
    """Rejects what all of its tests reject: the largest p-value, and the hull of the intervals.

    Attributes:
        tests: at least one; each is conservative or exact, so the joint one is conservative.
    """

    mean: float
    tests: Sequence[MeanTest]

    def p(self, null: float = 0.0) -> float:
        """Two-sided p-value of the hypothesis that the mean difference is `null`."""
        return 1.0 if null == self.mean else max(test.p(null) for test in self.tests)

    def interval(self, level: float) -> tuple[float, float]:
        """Confidence interval of the mean difference, within -1..1; its ends agree with `p`."""
        ends = [test.interval(level) for test in self.tests]
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        return max(-1.0, min(low, self.mean)), min(1.0, max(high, self.mean))


@dataclass(frozen=True, slots=True)
class Tail:
    """Test that allows for more large losses, or gains, than the sample happens to hold.

    A large loss is at least half of what a case could lose on average. The sample holds `count` of them among `seen`
    clusters, so by Clopper and Pearson's bound their true share may be higher. Were it `share`, the mean would be
    (1 - share) times `rest`, the mean of all others, plus `share` times `large`, the mean of the large ones. Only
    values on that side of the mean are tested; the other side is left to the other tests.

    Source: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934), 404-413; for bounding a mean by the mass that a sample leaves to the end of the
    range T. W. Anderson, "Confidence limits for the expected value of an arbitrary bounded random variable", Bulletin
    of the International Statistical Institute 43 (1969), 249-251.

    Attributes:
        mean: of all differences, -1..1.
        seen: clusters.
        count: those with a large loss, fewer than all.
        rest: mean of the others.
        large: mean of the large losses, or what a case could lose on average where the sample holds none.
    """

    mean: float
    seen: int
    count: int
    rest: float
    large: float

    @classmethod
    def of(cls, means: Sequence[float], mean: float, room: float, sign: Literal[-1, 1]) -> Tail | None:
        """Tail of the clusters' mean differences; None where no case could be further out than the mean.

        Args:
            means: of each cluster, at least one.
            mean: of all differences.
            room: how far a case could move that way on average, 0..1.
            sign: 1 for gains, -1 for losses.
        """
        inside = [one for one in means if sign * one >= room / 2 and one != 0]
        share = len(inside) / len(means)
        large = sum(inside) / len(inside) if inside else sign * room
        if share == 1 or sign * (large - mean) <= 0:
            return None
        return cls(mean, len(means), len(inside), (mean - share * large) / (1 - share), large)

    def p(self, null: float = 0.0) -> float:
        """Two-sided p-value of the hypothesis that the mean difference is `null`; 0 on the side that is not tested."""
        from scipy.special import bdtr

        if null == self.mean:
            return 1.0
        share = (null - self.rest) / (self.large - self.rest)
        if (null < self.mean) != (self.large < self.rest) or share >= 1:
            return 0.0
        return min(1.0, 2 * float(bdtr(self.count, self.seen, share)))

    def interval(self, level: float) -> tuple[float, float]:
        """From the mean to what the largest share of large differences that is not rejected would make of it."""
        from scipy.special import betaincinv

        share = float(betaincinv(self.count + 1, self.seen - self.count, (1 + level) / 2))
        end = (1 - share) * self.rest + share * self.large
        return min(self.mean, end), max(self.mean, end)


@dataclass(frozen=True, slots=True)
class StudentT:
    """Student's t test of a mean with a standard error and degrees of freedom.

    Attributes:
        error: standard error; 0: every other value is rejected.
        freedom: degrees of freedom, above 0; inf: the normal distribution.
    """

    mean: float
    error: float
    freedom: float

    def p(self, null: float = 0.0) -> float:
        """Two-sided p-value of the hypothesis that the mean is `null`."""
        away = abs(self.mean - null)
        if away == 0:
            return 1.0
        return t_tails(away / self.error, self.freedom) if self.error else 0.0

    def interval(self, level: float) -> tuple[float, float]:
        """The values that the test does not reject."""
        reach = self.error * t_quantile(self.freedom, level)
        return self.mean - reach, self.mean + reach
