"""Difference of two pass rates over the same cases, from the cases whose verdict changed: Tango's score test."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, inf, sqrt

from agentv.lazy_dataclass import dataclass
from agentv.stats.intervals.proportion import USUAL
from agentv.stats.intervals.student import t_quantile, t_tails

STEPS = 60
"""Bisections; they leave nothing of a width of 2."""


@dataclass(frozen=True, slots=True)
class WinLoss:
    """Score test of the difference of two paired pass rates: its p-value, and the interval that agrees with it.

    At zero it is McNemar's test without a continuity correction. Unlike Wald's interval or a bootstrap it has a width
    where nothing was won or nothing lost, and covers with few pairs.

    Pairs that fall into clusters count less: the variance of the score is multiplied by `design_effect`, as in
    J. N. K. Rao, A. J. Scott, "A simple method for the analysis of clustered binary data", Biometrics 48 (1992),
    577-585, and Student's t with the degrees of freedom of the cluster-robust variance takes the place of the normal
    distribution.

    Source: T. Tango, "Equivalence test and confidence interval for the difference in proportions for the paired-sample
    design", Statistics in Medicine 17 (1998), 891-908.

    Attributes:
        wins: pairs of which the candidate passed and the base did not.
        losses: pairs of which the base passed and the candidate did not.
        ties: both passed, or neither. Of weighted pairs the counts are shares times pairs, and need not be whole.
        design_effect: variance of the mean difference over what it would be of independent pairs, at least 1.
        freedom: degrees of freedom; inf: the normal distribution.

    Raises:
        ValueError: there are no pairs, or a count is negative.
    """

    wins: float
    losses: float
    ties: float
    design_effect: float = 1.0
    freedom: float = inf

    def __post_init__(self) -> None:
        if min(self.wins, self.losses, self.ties) < 0 or not self.pairs:
            raise ValueError(f"no pairs: {self.wins} wins, {self.losses} losses, {self.ties} ties")

    @property
    def pairs(self) -> float:
        """Number of pairs."""
        return self.wins + self.losses + self.ties

    @property
    def difference(self) -> float:
        """(wins - losses) / pairs: the pass rate of the candidate less that of the base, -1..1."""
        return (self.wins - self.losses) / self.pairs

    def p(self, null: float = 0.0) -> float:
        """Two-sided p-value of the hypothesis that the pass rates differ by `null`, -1..1."""
        return t_tails(abs(self._score(null)), self.freedom)

    def interval(self, level: float = USUAL) -> tuple[float, float]:
        """The differences that the test does not reject: (low, high), within -1..1.

        Args:
            level: the confidence, inside 0..1.

        Raises:
            ValueError: `level` is not inside 0..1.
        """
        reach, middle = t_quantile(self.freedom, level), self.difference
        low = -1.0 if middle == -1 else _crossing(lambda one: self._score(one) > reach, -1.0, middle)
        high = 1.0 if middle == 1 else _crossing(lambda one: self._score(one) >= -reach, middle, 1.0)
        return low, high

    def _score(self, difference: float) -> float:
        """How many standard errors the observed difference lies above this one."""
        variance = self.pairs * (2 * self._loss_share(difference) + difference * (1 - difference))
        above = self.wins - self.losses - self.pairs * difference
        if not above:
            return 0.0
        return above / sqrt(variance * self.design_effect) if variance > 0 else copysign(inf, above)

    def _loss_share(self, difference: float) -> float:
        """Maximum likelihood share of losses if this were the difference: the larger root of Tango's equation."""
        linear = (2 * self.pairs - self.wins + self.losses) * difference - self.wins - self.losses
        constant = -self.losses * difference * (1 - difference)
        root = sqrt(max(0.0, linear * linear - 8 * self.pairs * constant))
        return max(0.0, -difference, (root - linear) / (4 * self.pairs))


def _crossing(holds: Callable[[float], bool], begin: float, end: float) -> float:
    """Where what holds at the beginning ceases to."""
    for _ in range(STEPS):
        middle = (begin + end) / 2
        begin, end = (middle, end) if holds(middle) else (begin, middle)
    return (begin + end) / 2
