"""Power of a planned comparison of two runs.

`compare` calls a run worse where a permutation test of the signs of the cases' differences finds so much too rarely,
and an interval of their mean leaves 0 out. Of verdicts the first is McNemar's exact test, whose power can be counted
out; of means of several samples it comes near to a paired t test, unless the cases are few.
"""

from __future__ import annotations

from math import ceil, isnan, log2, sqrt
from typing import TYPE_CHECKING

from agentv.stats.power.drop import Drop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COUNTED = 5000
"""Number of changed cases up to which McNemar's power is computed exactly; above, the t test gives the same power."""
REHEARSED = 30
"""Cases up to which several samples of each are rehearsed: there a t test promises too much."""
TAIL = 9
"""Standard deviations of the number of changed cases beyond which nothing is left."""


FEWEST = 6
"""Cases below which a bootstrap's interval of 95 % covers so little that none is shown."""


def fewest_cases(alpha: float) -> int:
    """How many cases it takes until there is an interval, and one way of putting signs is rarer than alpha."""
    return max(FEWEST, rarest(alpha))


def rarest(alpha: float) -> int:
    """How many differences it takes until one way of putting signs is rarer than alpha: six at 0.05."""
    return ceil(1 - log2(alpha))


def chance_shown(cases: int, repeat: int, drop: Drop, alpha: float = 0.05) -> float:
    """How often `compare` calls the second of two runs worse, 0..1.

    Args:
        cases: that both runs have; below `fewest_cases` nothing is ever shown.
        repeat: samples of each case in each run, at least 1.
        drop: what is truly so.
        alpha: how often a difference may be seen where there is none, inside 0..1.
    """
    if cases < fewest_cases(alpha):
        return 0.0
    verdicts = repeat == 1 or drop.alike == 1
    if verdicts and cases * (drop.losses + drop.wins) <= COUNTED:
        return mcnemar_power(cases, drop.losses, drop.wins, alpha)
    if cases <= REHEARSED:
        from agentv.stats.power.power_simulation import rehearsed_power  # few plans need scipy's distributions

        return rehearsed_power(cases, repeat, drop, alpha)
    return t_power(cases, drop.difference, sqrt(max(0.0, drop.variance(repeat))), alpha)


def mcnemar_power(cases: int, losses: float, wins: float, alpha: float = 0.05) -> float:
    """The chance that McNemar's exact test, two-sided, shows that more cases are lost than won.

    Counted out over how many cases change, and how many of those are lost.

    Source: J. M. Lachin, "Power and sample size evaluation for the McNemar test with application to matched
    case-control studies", Statistics in Medicine 11 (1992), 1239–1251, section 3, the unconditional exact power.

    Args:
        cases: pairs, at least 1.
        losses: the chance of a pair to be lost.
        wins: that of a pair to be won; together they are above 0 and up to 1.
        alpha: as the test has it, inside 0..1.

    Raises:
        ValueError: one of them is out of range.
    """
    import numpy as np
    from scipy import special

    changing = min(1.0, losses + wins)
    if cases < 1 or min(losses, wins) < 0 or changing == 0 or losses + wins > 1 + 1e-9 or not 0 < alpha < 1:
        raise ValueError(f"no power: {cases} cases, losses {losses}, wins {wins}, alpha {alpha}")
    reach = TAIL * sqrt(cases * changing * (1 - changing)) + TAIL
    middle = cases * changing
    changed = np.arange(max(1, int(middle - reach)), min(cases, ceil(middle + reach)) + 1)
    upper = special.bdtr(changed, cases, changing) - special.bdtr(changed - 1, cases, changing)
    fewest = changed - _most_spared(changed, alpha)
    shown = special.bdtrc(fewest - 1, changed, losses / (losses + wins))
    return float(min(1.0, np.sum(np.where(fewest <= changed, upper * shown, 0.0))))


def _most_spared(changed: NDArray[np.int64], alpha: float) -> NDArray[np.int64]:
    """Of so many changed cases, how many may have changed the other way; −1 where none may."""
    import numpy as np
    from scipy import special

    usual = changed / 2 + special.ndtri(alpha / 2) * np.sqrt(changed) / 2  # the normal one is less than 2 off
    spared: NDArray[np.int64] = np.clip(np.floor(usual).astype(np.int64) + 2, -1, changed)
    while (over := (spared >= 0) & (2 * special.bdtr(np.maximum(spared, 0), changed, 0.5) > alpha)).any():
        spared -= over
    return spared


def t_power(cases: int, difference: float, deviation: float, alpha: float = 0.05) -> float:
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
