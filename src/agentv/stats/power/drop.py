"""A drop of the pass rate between two runs, and what of it the variance of their cases lets one see."""

from __future__ import annotations

from math import sqrt

from agentv.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Drop:
    """Two runs; the second passes less often.

    One verdict of a run with the pass rate P has the variance P · (1 − P). A part of it, `alike` (the intraclass
    correlation), lies between the cases: some are hard, some easy. The rest lies within them. Of the hardness of a case
    a part, `shared`, is the same for both runs.

    Source: E. Miller, "Adding error bars to evals" (2024), arXiv:2411.00640, sections 3 and 5; here each run has the
    variance of its own rate, which of a drop from 95 % to 85 % is more than twice that of the first.

    Attributes:
        rate: the share of passes before, above 0 and up to 1.
        difference: how much lower it is after, above 0 and up to `rate`.
        alike: how much of the variance lies between cases: 0 where all are equally hard, 1 where samples agree.
        shared: how much of what makes a case hard is so in both runs.

    Raises:
        ValueError: one of them is out of range.
    """

    rate: float
    difference: float
    alike: float = 0.5
    shared: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.difference <= self.rate <= 1 or not 0 <= self.alike <= 1 or not 0 <= self.shared <= 1:
            raise ValueError(f"no drop: {self}")

    @property
    def after(self) -> float:
        """The share of passes after."""
        return max(0.0, self.rate - self.difference)

    @property
    def covariance(self) -> float:
        """Of the true rates of a case in the two runs, were hardness all shared, times how much is.

        Rates that differ cannot go together wholly. Where samples agree they go together as far as after · (1 − rate),
        where cases hardly differ as far as the two deviations allow; between the two it is their geometric mean, by
        how much is alike, which is a little below what beta distributions come to.
        """
        most, apart = self.after * (1 - self.rate), sqrt(self._variances[0] * self._variances[1])
        return float(self.shared * self.alike * most**self.alike * apart ** (1 - self.alike))

    @property
    def losses(self) -> float:
        """The chance that a case, sampled once, passes before and fails after."""
        return max(0.0, self.rate * (1 - self.after) - self.covariance)

    @property
    def wins(self) -> float:
        """The chance that a case, sampled once, fails before and passes after."""
        return max(0.0, self.losses - self.difference)

    def variance(self, repeat: int) -> float:
        """Of a case's difference, where each run samples it so often."""
        verdicts = sum(self._variances)
        return self.alike * verdicts - 2 * self.covariance + (1 - self.alike) * verdicts / repeat

    @property
    def _variances(self) -> tuple[float, float]:
        return self.rate * (1 - self.rate), self.after * (1 - self.after)
