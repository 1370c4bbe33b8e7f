"""One measure of the pairs at a time: how far it moved, how sure that is, and what it shows by itself.

A claim needs two witnesses: an interval of the mean difference that lies beyond the margin, and a sign-flip permutation
test at that margin, which is exact for few cases, where bootstrap intervals are too short. Cases that hang together
count as one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from agentv.model.comparison import Interval, Measure, Measured, Question, Verdict
from agentv.model.grade import TOLERANCE
from agentv.stats.clustered import mean_interval
from agentv.stats.holm import adjusted
from agentv.stats.noninferiority import verdict
from agentv.stats.paired import SCORES, bca_interval, permutation_test
from agentv.stats.power import FEWEST, rarest
from agentv.stats.unseen import alike_difference, unseen_share

MANY = 10_000
"""Pairs above which the t interval serves: the mean of so many is normal for all that matters, and a bootstrap slow."""

_BORDERS: Mapping[Verdict, tuple[int, ...]] = {"better": (1,), "worse": (-1,), "equivalent": (-1, 1)}
"""At which ends of the margin a claim has to be tested."""


@dataclass(frozen=True, slots=True)
class Differences:
    """One measure of every pair, candidate less base, and what each of them hangs together with."""

    measure: Measure
    values: Sequence[float]
    clusters: Sequence[Hashable]

    @property
    def independent(self) -> int:
        """How many clusters there are."""
        return len(set(self.clusters))

    def sums(self, shift: float = 0.0) -> list[float]:
        """The sum of each cluster, every difference less the shift."""
        sums: dict[Hashable, float] = {}
        for value, cluster in zip(self.values, self.clusters, strict=True):
            sums[cluster] = sums.get(cluster, 0.0) + value - shift
        return list(sums.values())


def measured(found: Differences, question: Question) -> Measured:
    """What one measure shows by itself."""
    interval = _interval(found, 1 - question.alpha)
    claim: Verdict = "cannot tell"
    if interval is not None:
        claim = verdict(*interval, question.margin, unseen=unseen_share(found.independent, 1 - question.alpha))
    p = permutation_test(found.sums())
    p_of_claim = _p_of(claim, found, p, question.margin)
    shown: Verdict = claim if p_of_claim <= question.alpha else "cannot tell"
    return Measured(found.measure, fmean(found.values), interval, p, p_of_claim, shown)


def together(measures: Sequence[Measured], alpha: float) -> list[Measured]:
    """Measures that decide side by side, each of which may claim: their p-values corrected by Holm's method.

    That they are equivalent they claim together or not at all, which needs no correction.
    """
    p_values = adjusted([one.p for one in measures])
    of_claims = adjusted([one.p_of_claim for one in measures])
    raised = (
        replace(one, p=p, p_of_claim=one.p_of_claim if one.verdict == "equivalent" else of_claim)
        for one, p, of_claim in zip(measures, p_values, of_claims, strict=True)
    )
    return [replace(one, verdict=one.verdict if one.p_of_claim <= alpha else "cannot tell") for one in raised]


def may_claim(found: Differences, question: Question) -> bool:
    """Whether the measure can show anything: one that moved in too few cases to reach alpha needs no correction.

    Source: R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990), 515–522.
    """
    moved = sum(one != 0 for one in found.sums())
    return moved >= (1 if question.margin else rarest(question.alpha))


def _interval(found: Differences, level: float) -> Interval | None:
    values, clusters = found.values, found.independent
    if clusters < FEWEST:
        return None
    if max(values) - min(values) <= TOLERANCE:
        return alike_difference(values[0], clusters, level, SCORES)
    if clusters == len(values) <= MANY:
        return bca_interval(values, level=level)
    robust = mean_interval(values, found.clusters, level=level)
    if robust.high - robust.low <= TOLERANCE:  # all clusters moved alike: spread that did not show is not none
        mean = robust.mean if abs(robust.mean) > TOLERANCE else 0.0
        return alike_difference(mean, clusters, level, SCORES)
    return max(robust.low, SCORES[0]), min(robust.high, SCORES[1])


def _p_of(claim: Verdict, found: Differences, p: float, margin: float) -> float:
    """The p-value of what the interval claims; of a claim with two ends the larger one."""
    if claim == "cannot tell":
        return p if margin == 0 else 1.0
    return max(permutation_test(found.sums(sign * margin)) for sign in _BORDERS[claim])
