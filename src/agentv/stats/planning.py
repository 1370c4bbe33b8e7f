"""A planned comparison: so many cases, so often each, and what may be assumed of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from agentv.stats.power import cases_needed, detectable, power, spread_of_rate

SIZES = (0.25, 0.5, 1, 2, 4, 10)
"""Parts of the planned cases that a table has lines for."""
REPEATS = (1, 2, 3, 5, 10)
LEAST_CASES = 2
USUAL_CASES = 200


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is taken for granted of two runs that do not exist yet.

    Attributes:
        rate, alike, shared: as in `power.spread_of_rate`.
        alpha: how often a difference may be seen where there is none.
        power: how often one that is there shall be seen.
    """

    rate: float = 0.8
    alike: float = 0.5
    shared: float = 0.5
    alpha: float = 0.05
    power: float = 0.8

    def deviation(self, repeat: int) -> float:
        """The standard deviation of a case's difference between the two runs, each of which samples it so often."""
        return sqrt(spread_of_rate(self.rate, alike=self.alike, shared=self.shared).of_case(repeat))


@dataclass(frozen=True, slots=True)
class Plan:
    """Two runs of the same cases.

    Attributes:
        cases: how many, at least 2.
        repeat: samples of each case in each run.
    """

    cases: int
    repeat: int
    assumed: Assumed = Assumed()

    @property
    def least(self) -> float:
        """The least difference of pass rates that is seen as often as asked for; above 1: none is."""
        return self._least(self.cases, self.repeat)

    def chance(self, difference: float) -> float:
        """How often a difference of pass rates is seen, 0..1."""
        return power(self.cases, difference, self.assumed.deviation(self.repeat), self.assumed.alpha)

    def needed(self, difference: float) -> int | None:
        """How many cases it takes to see it as often as asked for; None: more than anybody runs."""
        return cases_needed(difference, self.assumed.deviation(self.repeat), self.assumed.power, self.assumed.alpha)

    def table(self) -> dict[int, dict[int, float]]:
        """Cases → repeat → the least difference that is seen, around what is planned."""
        sizes = sorted({max(LEAST_CASES, round(self.cases * size)) for size in SIZES})
        repeats = sorted({*REPEATS, self.repeat})
        return {cases: {repeat: self._least(cases, repeat) for repeat in repeats} for cases in sizes}

    def _least(self, cases: int, repeat: int) -> float:
        return detectable(cases, self.assumed.deviation(repeat), self.assumed.power, self.assumed.alpha)
