"""From p-values to a verdict (better, worse, equivalent, non-inferior, inconclusive), and which decisions are kept.

A claim is a one-sided test at a border of the margin, at half the level: two claims that exclude each other share it.
`better`: the mean difference lies above +margin; `worse`: below -margin; `equivalent`: between both; `non-inferior`:
above -margin. With a margin of 0 nothing is equivalent or non-inferior. Swapping the two runs swaps better and worse;
equivalent and inconclusive stay.

Source: G. Piaggio et al., "Reporting of noninferiority and equivalence randomized trials: extension of the CONSORT 2010
statement", JAMA 308 (2012), 2594-2604, figure 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, log2

from agentv.model.run.matrix import Measure, Verdict, Withheld

ROUNDING = 1e-9
"""Of a p-value; that of six of six verdicts is 1/32, which a level may be, too."""


def fewest_moved(alpha: float) -> int:
    """Clusters that must move, all the same way, to be rarer than alpha by chance: six at 0.05."""
    return ceil(1 - log2(alpha))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the differences of one measure say about a margin.

    Attributes:
        mean: of the differences.
        moved: clusters whose differences do not sum to zero.
        above, below: one-sided p-values that refute a mean at most, and at least, -margin and +margin; one where the
            margin is 0.
    """

    measure: Measure
    mean: float
    moved: int
    above: tuple[float, ...]
    below: tuple[float, ...]

    def may_claim(self, alpha: float) -> bool:
        """Whether a measure can show anything: one that changed in too few clusters is not corrected for.

        At a margin, one that did not change at all can show equivalence. A pass rate that did not is not counted beside
        its mean score, since a verdict takes both.

        Source: R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990), 515-522.
        """
        if len(self.above) > 1:
            return self.measure != "pass rate" or self.moved > 0
        return self.moved >= fewest_moved(alpha)

    @property
    def p(self) -> float:
        """Two-sided p-value of the hypothesis that the difference is at most the margin, either way."""
        return min(1.0, 2 * min(self.above[-1], self.below[0]))

    def claim(self, level: float) -> Verdict:
        """What is shown at a two-sided level."""
        for verdict in ("better", "worse", "equivalent", "non-inferior"):
            if self.p_of(verdict) <= level * (1 + ROUNDING):
                return verdict
        return "inconclusive"

    def p_of(self, verdict: Verdict) -> float:
        """The p-value of a verdict; of an inconclusive one that of any difference."""
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
    """The level of each measure by Holm's procedure; one that is not counted has that of the mean score before it."""
    claiming = [place for place, one in enumerate(found) if one.may_claim(alpha)]
    held = dict(zip(claiming, rejection_levels([found[place].p for place in claiming], alpha), strict=True))
    shown: list[float] = []
    for place, one in enumerate(found):
        beside = shown[-1] if len(one.above) > 1 and one.measure == "pass rate" and shown else alpha
        shown.append(held.get(place, beside))
    return shown


def together(shown: Sequence[Verdict]) -> tuple[Verdict, Withheld | None]:
    """The verdict of one or two measures, by what each shows; nothing where they contradict each other."""
    if "worse" in shown or "better" in shown:
        if {"worse", "better"} <= {*shown}:
            return "inconclusive", "measures"
        return ("worse" if "worse" in shown else "better"), None
    if all(one == "equivalent" for one in shown):
        return "equivalent", None
    return ("non-inferior" if {"equivalent", "non-inferior"} >= {*shown} else "inconclusive"), None


def decided(found: Sequence[Evidence], alpha: float) -> Verdict:
    """The verdict of the measures of one comparison."""
    return together([one.claim(level) for one, level in zip(found, levels(found, alpha), strict=True)])[0]


def rejection_levels(p_values: Sequence[float], alpha: float) -> tuple[float, ...]:
    """Of each test the level at which Holm's procedure holds it: it is rejected exactly when p is at most that level.

    The smallest of k p-values is held against alpha / k; if it is rejected, the next against alpha / (k - 1), and so
    on. From the first that is not rejected, the rest are held against the same level as that one. The chance that even
    one true null hypothesis is rejected stays below alpha, however the comparisons hang together.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6
    (1979), 65–70.

    Args:
        p_values: uncorrected, each 0..1.
        alpha: of all of them together, inside 0..1.
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
    """The evidence from which decisions are kept; inf where none is.

    Args:
        evidence: of every decision that was made, its e-value; 0 or more.
        cases: of all that were looked at, decided or not.
        level: the share of wrong ones among those that are kept, inside 0..1.

    Raises:
        ValueError: there are more decisions than cases, or `level` is not inside 0..1.
    """
    if len(evidence) > cases or not 0 < level < 1:
        raise ValueError(f"{len(evidence)} decisions on {cases} cases at the level {level}")
    ranked = sorted(evidence, reverse=True)
    ranks = [place for place, one in enumerate(ranked, 1) if one * place * level >= cases]
    return cases / (ranks[-1] * level) if ranks else inf


def kept_of(evidence: Sequence[float], cases: int, level: float) -> int:
    """Number of decisions that are kept; same arguments as `evidence_needed`."""
    needed = evidence_needed(evidence, cases, level)
    return sum(one >= needed for one in evidence)
