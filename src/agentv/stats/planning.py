"""A planned comparison: so many cases, so often each, and what may be assumed of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from agentv.stats.power import Drop, chance_shown, fewest_cases

SIZES = (0.25, 0.5, 1, 2, 4, 10)
"""Parts of the planned cases that a table has lines for."""
REPEATS = (1, 2, 3, 5, 10)
LEAST_CASES = 2
USUAL_CASES = 200
MOST_CASES = 100_000_000
"""More are never advised: nobody runs them."""
FINE = 1e-4
"""How exactly the least difference is found; three digits of it are shown."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is taken for granted of two runs that do not exist yet.

    Attributes:
        rate, alike, shared: as in `power.Drop`.
        alpha: how often a difference may be seen where there is none.
        power: how often one that is there shall be seen.
    """

    rate: float = 0.8
    alike: float = 0.5
    shared: float = 0.5
    alpha: float = 0.05
    power: float = 0.8

    def drop(self, difference: float) -> Drop:
        """The second run passes so much less often. A rise to `rate` is seen as often as a drop from it."""
        return Drop(self.rate, difference, self.alike, self.shared)

    @property
    def fewest(self) -> int:
        """Cases below which nothing can be shown, whatever comes out."""
        return fewest_cases(self.alpha)


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
        """The least drop of the pass rate that is seen as often as asked for; inf: none is."""
        return self._least(self.cases, self.repeat)

    def chance(self, difference: float) -> float:
        """How often a drop of the pass rate is seen, 0..1."""
        return self._chance(self.cases, self.repeat, difference)

    def needed(self, difference: float) -> int | None:
        """How many cases it takes to see it as often as asked for; None: more than anybody runs."""

        def enough(cases: int) -> bool:
            return self._chance(cases, self.repeat, difference) >= self.assumed.power

        low, high = self.assumed.fewest - 1, self.assumed.fewest
        while not enough(high):
            low, high = high, high * 2
            if high > MOST_CASES:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    def table(self) -> dict[int, dict[int, float]]:
        """Cases → repeat → the least drop that is seen, around what is planned; inf: none is."""
        sizes = sorted({max(LEAST_CASES, round(self.cases * size)) for size in SIZES})
        repeats = sorted({*REPEATS, self.repeat})
        return {cases: {repeat: self._least(cases, repeat) for repeat in repeats} for cases in sizes}

    def _chance(self, cases: int, repeat: int, difference: float) -> float:
        return chance_shown(cases, repeat, self.assumed.drop(difference), self.assumed.alpha)

    def _least(self, cases: int, repeat: int) -> float:
        wanted, largest = self.assumed.power, self.assumed.rate
        if self._chance(cases, repeat, largest) < wanted:
            return inf
        return _crossing(lambda difference: self._chance(cases, repeat, difference) >= wanted, 0.0, largest)


def _crossing(holds: Callable[[float], bool], below: float, above: float) -> float:
    while above - below > FINE:
        middle = (below + above) / 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above
