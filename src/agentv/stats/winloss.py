"""How much more often one of two runs passes a case that the other fails: wins, losses, ties and their interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from agentv.stats.proportion import USUAL, quantile

STEPS = 60
"""Halvings: they leave nothing of a width of 2."""


@dataclass(frozen=True, slots=True)
class WinLoss:
    """Pairs of one case in two runs.

    Attributes:
        wins: the candidate passed and the base did not.
        losses: the base passed and the candidate did not.
        ties: both passed, or neither.
    """

    wins: int
    losses: int
    ties: int

    @property
    def pairs(self) -> int:
        """All of them."""
        return self.wins + self.losses + self.ties

    @property
    def difference(self) -> float:
        """(wins − losses) / pairs: the pass rate of the candidate less that of the base, −1..1.

        Raises:
            ValueError: there are no pairs.
        """
        if min(self.wins, self.losses, self.ties) < 0 or not self.pairs:
            raise ValueError(f"no pairs: {self.wins} wins, {self.losses} losses, {self.ties} ties")
        return (self.wins - self.losses) / self.pairs

    def interval(self, level: float = USUAL) -> tuple[float, float]:
        """Tango's score interval of the difference: (low, high), within −1..1.

        It holds all differences that a score test does not refuse, so that, unlike the interval of Wald or a bootstrap,
        it has a width where nothing was won or nothing lost, and covers with few pairs too.

        Source: T. Tango, "Equivalence test and confidence interval for the difference in proportions for the
        paired-sample design", Statistics in Medicine 17 (1998), 891–908.

        Args:
            level: the confidence, inside 0..1.

        Raises:
            ValueError: there are no pairs, or no such confidence.
        """
        z, middle = quantile(level), self.difference
        low = -1.0 if middle == -1 else _crossing(lambda one: self._score(one) > z, -1.0, middle)
        high = 1.0 if middle == 1 else _crossing(lambda one: self._score(one) >= -z, middle, 1.0)
        return low, high

    def _score(self, difference: float) -> float:
        """How many standard errors the pairs lie above this difference."""
        error = sqrt(self.pairs * (2 * self._losing(difference) + difference * (1 - difference)))
        above = self.wins - self.losses - self.pairs * difference
        return above / error if error else above * float("inf")

    def _losing(self, difference: float) -> float:
        """The likeliest share of losses, were this the true difference: the larger root of Tango's equation."""
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
