"""What a planned comparison of two runs can show, and what it cannot.

Two runs of the same cases are compared by the mean of their differences, a paired t test. How sure that mean is hangs
on two variances: how far the cases differ in what the two runs truly make of them, which only more cases help against,
and how far the samples of one case differ, which more repeats help against too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan, sqrt

STEPS = 100
MOST_CASES = 100_000_000
"""More are never advised: nobody runs them."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the differences of two runs come from, in variances of a score of 0..1.

    Attributes:
        between: ω², of the true difference of a case.
        within: σ² of one run, of the samples of a case around its own mean.
    """

    between: float
    within: float

    def of_case(self, repeat: int) -> float:
        """The variance of a case's difference where each run samples it so often: ω² + 2σ² / repeat."""
        return self.between + 2 * self.within / repeat


def spread_of_rate(rate: float, *, alike: float = 0.5, shared: float = 0.5) -> Spread:
    """The spread of pass rates around `rate`, when nothing else is known.

    One verdict has the variance rate · (1 − rate). A part of it, `alike` (the intraclass correlation), lies between the
    cases: some are hard, some easy. The rest lies within them. Of the hardness of a case a part, `shared`, is the same
    for both runs and falls out of the difference.

    Source: E. Miller, "Adding error bars to evals" (2024), arXiv:2411.00640, sections 3 and 5, where the variance of
    the cases' means is alike · rate · (1 − rate), and the covariance of two runs a `shared` part of it.

    Args:
        rate: the expected share of passes, inside 0..1.
        alike: how much of the variance lies between cases: 0 where all are equally hard, 1 where samples agree.
        shared: the correlation of the two runs' true rates over the cases.

    Raises:
        ValueError: one of them is out of range.
    """
    if not 0 < rate < 1 or not 0 <= alike <= 1 or not 0 <= shared <= 1:
        raise ValueError(f"no spread: rate {rate}, alike {alike}, shared {shared}")
    whole = rate * (1 - rate)
    return Spread(2 * whole * alike * (1 - shared), whole * (1 - alike))


def power(cases: int, difference: float, deviation: float, alpha: float = 0.05) -> float:
    """The chance that a two-sided paired t test shows the difference, and on its own side.

    R: `power.t.test(n = cases, delta = difference, sd = deviation, sig.level = alpha, type = "paired")$power`.

    Source: J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd ed. (1988), section 2.3; exact by the
    noncentral t distribution.

    Args:
        cases: pairs, at least 2.
        difference: of the means, above 0.
        deviation: standard deviation of a case's difference; 0: the test shows everything.
        alpha: how often a difference may be seen where there is none, inside 0..1.

    Raises:
        ValueError: one of them is out of range.
    """
    from scipy.special import nctdtr, stdtrit

    if cases < 2 or difference <= 0 or deviation < 0 or not 0 < alpha < 1:
        raise ValueError(f"no power: {cases} cases, difference {difference}, deviation {deviation}, alpha {alpha}")
    if deviation == 0:
        return 1.0
    needed = stdtrit(cases - 1, 1 - alpha / 2)
    found = 1 - float(nctdtr(cases - 1, sqrt(cases) * difference / deviation, needed))
    return 1.0 if isnan(found) else found  # so far out that the distribution has no number left


def detectable(cases: int, deviation: float, wanted: float = 0.8, alpha: float = 0.05) -> float:
    """The minimum detectable effect: the least difference that is shown with the power `wanted`.

    R: `power.t.test(n = cases, power = wanted, sd = deviation, sig.level = alpha, type = "paired")$delta`.

    Raises:
        ValueError: as `power`, or the wanted power is not above alpha / 2 and below 1.
    """
    if not alpha / 2 < wanted < 1:
        raise ValueError(f"no power: {wanted}")
    if deviation == 0:
        return 0.0
    reach = deviation
    while power(cases, reach, deviation, alpha) < wanted:
        reach *= 2
    return _least(lambda effect: power(cases, effect, deviation, alpha) >= wanted, 0.0, reach)


def cases_needed(difference: float, deviation: float, wanted: float = 0.8, alpha: float = 0.05) -> int | None:
    """How many cases show the difference with the power wanted; None where it is more than anybody runs.

    R: `ceiling(power.t.test(power = wanted, delta = difference, sd = deviation, sig.level = alpha, type =
    "paired")$n)`.
    """
    low, high = 1, 2
    while power(high, difference, deviation, alpha) < wanted:
        low, high = high, high * 2
        if high > MOST_CASES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle, difference, deviation, alpha) >= wanted else (middle, high)
    return high


def _least(holds: Callable[[float], bool], below: float, above: float) -> float:
    for _ in range(STEPS):
        middle = (below + above) / 2
        if middle in (below, above):
            break
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above
