"""What pairs of scores show: better, worse, no difference that matters, or nothing (SPEC section 10).

A claim needs two witnesses: an interval of the mean difference that lies beyond the margin, and a sign-flip permutation
test at that margin, which is exact for few cases, where bootstrap intervals are too short. Cases that hang together
count as one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil, fsum, log2, sqrt
from statistics import NormalDist, fmean

from agentv.model.comparison import CaseOutcome, Interval, Judgement, Level, Moves, Pair, Question, Verdict
from agentv.model.grade import TOLERANCE
from agentv.stats.clustered import mean_interval
from agentv.stats.holm import adjusted
from agentv.stats.noninferiority import verdict
from agentv.stats.paired import SCORES, bca_interval, mcnemar_exact, permutation_test
from agentv.stats.proportion import wilson_interval
from agentv.stats.unseen import alike_difference

POWER = 0.8
"""How often a difference that is called detectable is shown."""

MANY = 10_000
"""Pairs above which the t interval serves: the mean of so many is normal for all that matters, and a bootstrap slow."""

MOST_NEEDED = 1_000_000
"""Cases that somebody might write; a difference that takes more of them is as good as none."""

_BORDERS: Mapping[Verdict, tuple[int, ...]] = {"better": (1,), "worse": (-1,), "equivalent": (-1, 1)}
"""At which ends of the margin a claim has to be tested."""


def judge(pairs: Sequence[Pair], question: Question) -> Judgement:
    """What the pairs show; at least one."""
    differences, clusters = [pair.delta for pair in pairs], [_cluster(pair) for pair in pairs]
    interval = _interval(differences, clusters, 1 - question.alpha)
    claim = verdict(*interval, question.margin)
    p_of_claim = _p_of(claim, differences, clusters, question.margin)
    delta, gains = fmean(differences), [pair.gain for pair in pairs if pair.gain is not None]
    independent = len(set(clusters))
    detectable = _detectable(differences, clusters, interval, question.alpha)
    return Judgement(
        pairs=len(pairs),
        clusters=independent,
        before=_level(pair.before for pair in pairs),
        after=_level(pair.after for pair in pairs),
        moves=_moves(pairs, question.alpha),
        delta=delta,
        interval=interval,
        gain=fmean(gains) if gains else None,
        room=len(gains),
        p=_permuted(differences, clusters),
        p_of_claim=p_of_claim,
        verdict=claim if p_of_claim <= question.alpha else "cannot tell",
        detectable=detectable,
        needed=_needed(detectable, abs(abs(delta) - question.margin), independent, question.alpha),
    )


def corrected(judgements: Sequence[Judgement], alpha: float) -> list[Judgement]:
    """The same comparisons, their p-values corrected for their number: a claim that does not stand is taken back."""
    raised = adjusted([one.p_of_claim for one in judgements])
    return [
        replace(one, p_of_claim=p, verdict=one.verdict if p <= alpha else "cannot tell")
        for one, p in zip(judgements, raised, strict=True)
    ]


def least_cases(alpha: float) -> int:
    """How many cases it takes until one way of putting signs is rarer than alpha: six at 0.05."""
    return ceil(1 - log2(alpha))


def _cluster(pair: Pair) -> Hashable:
    """What a pair hangs together with: its conversation or what the user named, else its own case on all targets."""
    return pair.before.cluster or (pair.before_key.suite, pair.before_key.case_id)


def _level(outcomes: Iterable[CaseOutcome]) -> Level:
    found = list(outcomes)
    return Level(fmean(one.score or 0.0 for one in found), sum(one.status == "passed" for one in found))


def _moves(pairs: Sequence[Pair], alpha: float) -> Moves:
    wins, losses = (sum(pair.outcome == outcome for pair in pairs) for outcome in ("win", "loss"))
    fixed, broken = sum(pair.fixed for pair in pairs), sum(pair.broken for pair in pairs)
    share = wilson_interval(wins, wins + losses, 1 - alpha) if wins + losses else None
    return Moves(wins, losses, len(pairs) - wins - losses, share, fixed, broken, mcnemar_exact(fixed, broken))


def _interval(differences: Sequence[float], clusters: Sequence[Hashable], level: float) -> Interval:
    if len(set(clusters)) == len(clusters) <= MANY:
        return bca_interval(differences, level=level)
    if max(differences) - min(differences) <= TOLERANCE:
        return alike_difference(differences[0], len(set(clusters)), level, SCORES)
    found = mean_interval(differences, clusters, level=level)
    return max(found.low, SCORES[0]), min(found.high, SCORES[1])


def _p_of(claim: Verdict, differences: Sequence[float], clusters: Sequence[Hashable], margin: float) -> float:
    """The p-value of what the interval claims; of a claim with two ends the larger one."""
    if claim == "cannot tell":
        return _permuted(differences, clusters) if margin == 0 else 1.0
    ends = ([one - sign * margin for one in differences] for sign in _BORDERS[claim])
    return max(_permuted(shifted, clusters) for shifted in ends)


def _permuted(differences: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """The permutation test, in which a cluster keeps or turns its signs as one."""
    return permutation_test(list(_sums(differences, clusters).values()))


def _sums(numbers: Sequence[float], clusters: Sequence[Hashable]) -> dict[Hashable, float]:
    """The sum of each cluster."""
    sums: dict[Hashable, float] = {}
    for number, cluster in zip(numbers, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + number
    return sums


def _detectable(differences: Sequence[float], clusters: Sequence[Hashable], interval: Interval, alpha: float) -> float:
    """The difference that is shown with the power asked for: z_alpha + z_power standard errors of the mean.

    Where all differences are alike there is no error to be had from them, so half of the interval stands for z_alpha.

    Source: J. Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), chapter 2, for a normal mean.
    """
    if len(set(clusters)) < least_cases(alpha):
        return 1.0
    usual, power = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(POWER)
    error = _error(differences, clusters) or (interval[1] - interval[0]) / 2 / usual
    return min(1.0, (usual + power) * error)


def _error(differences: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """The standard error of the mean by how much the clusters differ; at least two."""
    mean = fmean(differences)
    sums = list(_sums([one - mean for one in differences], clusters).values())
    return sqrt(fsum(one * one for one in sums) * len(sums) / (len(sums) - 1)) / len(differences)


def _needed(detectable: float, distance: float, clusters: int, alpha: float) -> int | None:
    """How many cases would show a difference so far from the margin; None where these should, or no number would do."""
    if clusters < least_cases(alpha):
        return least_cases(alpha)
    if detectable <= distance or clusters * (detectable / MOST_NEEDED**0.5) ** 2 > distance**2:
        return None
    return ceil(clusters * (detectable / distance) ** 2)
