"""Mean scores of a run as people would give them, from the scores of a judge and those of people for a few answers.

Stratified prediction-powered inference with the best weight: within the answers that the judge passed, and within those
that it failed, the mean of people's scores is moved by what the judge says of the answers that were not drawn. Sources:
A. N. Angelopoulos, J. C. Duchi, T. Zrnic, "PPI++", arXiv 2311.01453; A. Fisch et al., "Stratified prediction-powered
inference for effective hybrid evaluation of language models", NeurIPS 2024.

The interval is Wilson's at the effective sample size at which it is as wide as that of Student's t with Satterthwaite's
degrees of freedom, so that it stays inside 0..1 and leans away from the ends. Labels that all differ from the judge by
the same do not show that people always do so: then, and in part always, the variance is the largest that scores have.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from agentv.extensions.labels.stats.posterior import LEVEL, Estimated, design_effect
from agentv.stats.intervals.proportion import interval_at, quantile

FEWEST = 2
"""Labels that each verdict of the judge needs, unless it has only one answer: fewer show no variance."""

UNSEEN = 0.5
"""Labels' worth of weight with which the variance is drawn towards the largest that scores can have."""


_ALIKE = 1e-9
"""Share of the largest variance below which a variance is only rounding."""


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """An answer of a run that a judge gave a score.

    Attributes:
        passed: the judge's verdict, by which answers were drawn.
        judge: the judge's score, 0..1.
        person: mean score by people; None: it has none.
        cluster: answers with the same one are alike; None: it is one of its own.
        weight: how many trials it stands for.
    """

    passed: bool
    judge: float
    person: float | None = None
    cluster: Hashable = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class _Stratum:
    """Answers with one verdict of the judge.

    Attributes:
        share: of all answers.
        mean: corrected.
        slope: how much of the judge's differences people share, 0..1.
        judge: the judge's mean score.
        residual: what people's mean score has besides the slope times the judge's, in the labelled answers.
        labelled: their weight.
        variance: of the labelled answers' part of the whole mean.
        freedom: with which it is known.
    """

    share: float
    mean: float
    slope: float
    judge: float
    residual: float
    labelled: float
    variance: float
    freedom: float


def corrected_mean(answers: Iterable[ScoredAnswer], level: float = LEVEL) -> Estimated | None:
    """The mean score by people, where the labelled answers are a random part of those with the same verdict.

    Returns:
        None: there are too few labels of the answers with a verdict: fewer than two of several answers.
    """
    found = list(answers)
    total = fsum(one.weight for one in found)
    strata: dict[bool, _Stratum] = {}
    for verdict in {one.passed for one in found}:
        members = [one for one in found if one.passed is verdict]
        labelled = sum(one.person is not None for one in members)
        if labelled < min(FEWEST, len(members)):
            return None
        strata[verdict] = _stratum(members, total)
    if not strata:
        return None
    mean = min(1.0, max(0.0, fsum(one.share * one.mean for one in strata.values())))
    by_judge = [
        one.weight / total * (stratum.slope * (one.judge - stratum.judge) + stratum.mean - mean)
        for one in found
        for stratum in (strata[one.passed],)
    ]
    parts = [(one.variance, one.freedom) for one in strata.values()]
    parts.append((fsum(one * one for one in by_judge), max(1.0, len(found) - 1)))
    variance = fsum(part for part, _ in parts)
    freedom = variance**2 / fsum(part * part / known for part, known in parts)
    variance *= design_effect([one.cluster for one in found], list(_influences(found, strata, by_judge)))
    return _interval(mean, variance, freedom, len([one for one in found if one.person is not None]), level)


def _stratum(members: Sequence[ScoredAnswer], total: float) -> _Stratum:
    weight = fsum(one.weight for one in members)
    labelled = [(one.weight, one.judge, one.person) for one in members if one.person is not None]
    known = fsum(one for one, _, _ in labelled)
    judge = fsum(one.weight * one.judge for one in members) / weight
    spread = fsum(one.weight * (one.judge - judge) ** 2 for one in members) / weight
    spread *= len(members) / (len(members) - 1) if len(members) > 1 else 0.0
    seen = fsum(one * score for one, score, _ in labelled) / known
    people = fsum(one * score for one, _, score in labelled) / known
    count = len(labelled)
    together = fsum(one * (score - seen) * (person - people) for one, score, person in labelled) / known
    together *= count / (count - 1) if count > 1 else 0.0
    slope = min(1.0, max(0.0, together / spread)) if spread > 0 else 0.0
    residual = people - slope * seen
    mean = slope * judge + residual
    share = weight / total
    squares = fsum((one * (person - slope * score - residual)) ** 2 for one, score, person in labelled)
    squares *= (share / known) ** 2 * (count / (count - 1) if count > 1 else 1.0)
    likely = (people * count + 0.5) / (count + 1)
    largest = share**2 * likely * (1 - likely) * fsum(one * one for one, _, _ in labelled) / known**2
    seen_weight = count if squares > largest * _ALIKE else 0.0
    variance = (squares * seen_weight + largest * UNSEEN) / (seen_weight + UNSEEN)
    return _Stratum(share, mean, slope, judge, residual, known, variance, max(1.0, count - 1))


def _influences(
    answers: Sequence[ScoredAnswer], strata: Mapping[bool, _Stratum], by_judge: Sequence[float]
) -> Iterator[tuple[float, float]]:
    """By how much each answer moves the mean, and the expected square of that."""
    for one, influence in zip(answers, by_judge, strict=True):
        if one.person is None:
            yield influence, influence * influence
            continue
        found = strata[one.passed]
        weight = found.share * one.weight / found.labelled
        moved = influence + weight * (one.person - found.slope * one.judge - found.residual)
        count = found.freedom + 1
        yield moved, influence * influence + found.variance / count


def _interval(mean: float, variance: float, freedom: float, labels: int, level: float) -> Estimated:
    from agentv.stats.intervals.student import t_quantile

    inside = (mean * labels + 0.5) / (labels + 1)
    effective = inside * (1 - inside) / variance * (quantile(level) / t_quantile(freedom, level)) ** 2
    low, high = interval_at(mean, effective, level)
    return Estimated(mean, (low, high))
