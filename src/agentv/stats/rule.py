"""From p-values to a verdict (better, worse, equivalent, non-inferior, inconclusive), and which decisions hold.

A claim is a one-sided test at -margin or +margin, at half the level, since two mutually exclusive claims share it. The
mean difference is above +margin (`better`), below -margin (`worse`), between them (`equivalent`) or above -margin
(`non-inferior`). With a margin of 0, nothing is equivalent or non-inferior. Swapping the two runs swaps better and
worse; equivalent and inconclusive stay the same.

Source: G. Piaggio et al., "Reporting of noninferiority and equivalence randomized trials: extension of the CONSORT 2010
statement", JAMA 308 (2012), 2594-2604, figure 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, log2

from agentv.model.run.matrix import Measure, Verdict, Withheld

ROUNDING = 1e-9
"""Relative tolerance of a p-value: that of six of six verdicts is 1/32, which can also be the level."""


def fewest_moved(alpha: float) -> int:
    """Smallest number of clusters that is significant at alpha if all move in the same direction: six at 0.05."""
    return ceil(1 - log2(alpha))


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence from the differences of one measure for and against a difference beyond the margin.

    Attributes:
        measure: the measure.
        mean: mean difference.
        moved: number of clusters whose differences do not sum to zero.
        above, below: one-sided p-values for the claims that the mean is above, or below, -margin and +margin; a single
            value each if the margin is 0.
    """

    measure: Measure
    mean: float
    moved: int
    above: tuple[float, ...]
    below: tuple[float, ...]

    def may_claim(self, alpha: float) -> bool:
        """Whether the measure counts as a test in the correction: without a margin, enough clusters must have moved.

        With a margin, a measure that did not change at all can show equivalence. Only a pass rate that did not change
        is not counted in addition to its mean score, since a verdict requires both.

        Source: R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990), 515-522.
        """
        if len(self.above) > 1:
            return self.measure != "pass rate" or self.moved > 0
        return self.moved >= fewest_moved(alpha)

    @property
    def p(self) -> float:
        """Two-sided p-value of the hypothesis that the difference is within the margin."""
        return min(1.0, 2 * min(self.above[-1], self.below[0]))

    def claim(self, level: float) -> Verdict:
        """The verdict at a two-sided level."""
        for verdict in ("better", "worse", "equivalent", "non-inferior"):
            if self.p_of(verdict) <= level * (1 + ROUNDING):
                return verdict
        return "inconclusive"

    def p_of(self, verdict: Verdict) -> float:
        """The p-value of a verdict; for `inconclusive`, that of any difference."""
        if verdict == "inconclusive":
            return self.p
        if verdict in ("equivalent", "non-inferior") and len(self.above) == 1:
            return 1.0
        shown = {
            "better": self.above[-1],
            "worse": self.below[0],
            "equivalent": max(self.above[0], self.below[-1]),
            "non-inferior": self.above[0],
        }
        return min(1.0, 2 * shown[verdict])


def levels(found: Sequence[Evidence], alpha: float) -> list[float]:
    """Level of each measure by Holm's procedure.

    A measure that does not count as a test gets alpha; at a margin, such a pass rate gets the level of its mean score.
    """
    claiming = [place for place, one in enumerate(found) if one.may_claim(alpha)]
    held = dict(zip(claiming, rejection_levels([found[place].p for place in claiming], alpha), strict=True))
    shown: list[float] = []
    for place, one in enumerate(found):
        beside = shown[-1] if len(one.above) > 1 and one.measure == "pass rate" and shown else alpha
        shown.append(held.get(place, beside))
    return shown


def combined(shown: Sequence[Verdict]) -> tuple[Verdict, Withheld | None]:
    """The combined verdict of one or two measures, and why it is withheld if they contradict each other."""
    if "worse" in shown or "better" in shown:
        if {"worse", "better"} <= {*shown}:
            return "inconclusive", "measures"
        return ("worse" if "worse" in shown else "better"), None
    if all(one == "equivalent" for one in shown):
        return "equivalent", None
    return ("non-inferior" if {"equivalent", "non-inferior"} >= {*shown} else "inconclusive"), None


def decided(found: Sequence[Evidence], alpha: float) -> Verdict:
    """The verdict of one comparison from the evidence of its measures."""
    return combined([one.claim(level) for one, level in zip(found, levels(found, alpha), strict=True)])[0]


def rejection_levels(p_values: Sequence[float], alpha: float) -> tuple[float, ...]:
    """Level of each test by Holm's procedure: its hypothesis is rejected exactly if p is at most that level.

    The smallest of k p-values is compared with alpha / k; if it is rejected, the next with alpha / (k - 1), and so on.
    After the first that is not rejected, all others are compared with the same level. The probability of rejecting any
    true null hypothesis is at most alpha, whatever the dependence between the tests.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6
    (1979), 65–70.

    Args:
        p_values: uncorrected p-values, each 0..1.
        alpha: familywise error rate, strictly between 0 and 1.
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    levels = [alpha] * len(p_values)
    level, holding = alpha, True
    for smaller, place in enumerate(order):
        if holding:
            level = alpha / (len(p_values) - smaller)
            holding = p_values[place] <= level
        levels[place] = level
    return tuple(levels)


def evidence_needed(evidence: Sequence[float], cases: int, level: float) -> float:
    """Smallest e-value at which a decision holds at this false discovery rate, or inf if none does.

    Args:
        evidence: e-value of every decision, 0 or more.
        cases: number of all cases, decided or not.
        level: false discovery rate, strictly between 0 and 1.

    Raises:
        ValueError: there are more decisions than cases, or `level` is out of range.
    """
    if len(evidence) > cases or not 0 < level < 1:
        raise ValueError(f"{len(evidence)} decisions on {cases} cases at the level {level}")
    ranked = sorted(evidence, reverse=True)
    ranks = [place for place, one in enumerate(ranked, 1) if one * place * level >= cases]
    return cases / (ranks[-1] * level) if ranks else inf


def confirmed_count(evidence: Sequence[float], cases: int, level: float) -> int:
    """Number of decisions that hold; same arguments as `evidence_needed`."""
    needed = evidence_needed(evidence, cases, level)
    return sum(one >= needed for one in evidence)
