"""Accuracy of several judges on the same labelled answers, and the paired differences between them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import fsum

from agentv.extensions.labels.stats.agreement import JudgeAccuracy, judge_accuracy
from agentv.extensions.labels.stats.posterior import (
    JEFFREYS,
    LEVEL,
    Draws,
    Estimated,
    JudgeCounts,
    JudgedAnswer,
    JudgeDraws,
    Observation,
    counted,
    estimated,
    judge_counts,
)
from agentv.model.run.matrix import Verdict

FEWEST = 6
"""Clusters from which on two judges are compared: with fewer, no difference could be significant."""


@dataclass(frozen=True, slots=True)
class PersonLabel:
    """A labelled answer.

    Attributes:
        passed: whether people pass it.
        drawn_from: the verdict of the judge from whose answers it was drawn; None: it was not drawn at random.
        weight: answers of the run that it stands for, above 0.
        cluster: answers with the same one are alike; None: it is one of its own.
    """

    passed: bool
    drawn_from: bool | None = None
    weight: float = 1.0
    cluster: Hashable = None


def share_right(labels: Sequence[PersonLabel], verdicts: Sequence[bool]) -> float:
    """The weighted share of labels that verdicts agree with."""
    agreed = (one.weight for one, verdict in zip(labels, verdicts, strict=True) if one.passed is verdict)
    return fsum(agreed) / fsum(one.weight for one in labels)


def accuracy_of(
    labels: Sequence[PersonLabel],
    verdicts: Sequence[bool],
    counts: JudgeCounts | None = None,
    seed: int = 0,
) -> JudgeAccuracy:
    """How well verdicts agree with labels.

    Labels that were drawn from what some judge passed, and from what it failed, are weighted by how often it did so: in
    each of the four groups of answers by that judge's verdict and by people's, the share that this judge passes has
    Jeffreys' prior. For the judge that they were drawn by, and one with its verdicts, this is `judge_accuracy`.

    Args:
        labels: by people, at least one.
        verdicts: of the judge, one for each label.
        counts: of the judge that they were drawn by; None: they were not drawn, and count alike.
        seed: of the draws.

    Raises:
        ValueError: there are no labels, or not as many verdicts.
    """
    if not labels or len(labels) != len(verdicts):
        raise ValueError(f"no pairs: {len(labels)} labels, {len(verdicts)} verdicts")
    if counts is None:
        pairs = zip(labels, verdicts, strict=True)
        return judge_accuracy(judge_counts(JudgedAnswer(verdict, one.passed, one.cluster) for one, verdict in pairs))
    if all(one.drawn_from is verdict for one, verdict in zip(labels, verdicts, strict=True)):
        return judge_accuracy(counts, seed)
    cells = _cells(labels, verdicts, JudgeDraws.of(counts, seed), seed)
    (true_passes, false_failures), (false_passes, true_failures) = cells[True], cells[False]
    agreed = true_passes + true_failures
    person, judge = true_passes + false_failures, true_passes + false_passes
    by_chance = person * judge + (1 - person) * (1 - judge)
    some_pass, some_fail = any(one.passed for one in labels), not all(one.passed for one in labels)
    return JudgeAccuracy(
        estimated(true_passes / person) if some_pass else None,
        estimated(true_failures / (1 - person)) if some_fail else None,
        estimated(agreed).at(share_right(labels, verdicts)),
        estimated((agreed - by_chance) / (1 - by_chance))
        if some_pass and some_fail and len(set(verdicts)) > 1
        else None,
    )


def _cells(
    labels: Sequence[PersonLabel], verdicts: Sequence[bool], draws: JudgeDraws, seed: int
) -> dict[bool, tuple[Draws, Draws]]:
    """What people say → draws of the shares of all answers that people say this of and the judge passes, and fails."""
    import numpy as np

    chance = np.random.default_rng([seed, 2])
    found: dict[bool, tuple[Draws, Draws]] = {}
    for person in (True, False):
        passes, failures = np.zeros(len(draws.rate)), np.zeros(len(draws.rate))
        for stratum, share, by_people in ((True, draws.rate, draws.passed), (False, 1 - draws.rate, draws.failed)):
            seen = counted(
                Observation(verdict, one.cluster, one.weight)
                for one, verdict in zip(labels, verdicts, strict=True)
                if one.drawn_from is stratum and one.passed is person
            )
            size = share * (by_people if person else 1 - by_people)
            passed = chance.beta(JEFFREYS + seen.passed, JEFFREYS + seen.failed, len(size))
            passes, failures = passes + size * passed, failures + size * (1 - passed)
        found[person] = (passes, failures)
    return found


@dataclass(frozen=True, slots=True)
class AccuracyDifference(Estimated):
    """The accuracy of a judge less that of another, on the same answers, with the interval of this comparison alone.

    Attributes:
        p_value: two-sided, that both are as accurate, corrected for the number of comparisons.
        only_this, only_other: answers on which only this judge, and only the other, says what people say.
        verdict: what is shown of this judge, at the margin, corrected likewise.
    """

    p_value: float
    only_this: int
    only_other: int
    verdict: Verdict = "inconclusive"


def accuracy_difference(
    labels: Sequence[PersonLabel],
    verdicts: Sequence[bool],
    others: Sequence[bool],
    comparisons: int = 1,
    level: float = LEVEL,
    margin: float = 0.0,
) -> AccuracyDifference | None:
    """How much more accurate a judge is than another one, by the paired test of `compare`.

    The difference is that of the weighted shares of right verdicts. P-values and verdicts of several comparisons are
    corrected by Bonferroni; the interval is of this one alone.

    Args:
        labels: by people.
        verdicts: of the judge, one for each label.
        others: those of the judge that it is compared with.
        comparisons: how many are made.
        level: the confidence of the interval, and of all verdicts together.
        margin: a difference up to this does not matter.

    Returns:
        None: fewer than six clusters.
    """
    from agentv.stats.comparison.difference import Differences  # loads numpy

    this, other = (
        [float(verdict is one.passed) for one, verdict in zip(labels, of, strict=True)] for of in (verdicts, others)
    )
    clusters = [(place,) if one.cluster is None else one.cluster for place, one in enumerate(labels)]
    found = Differences(other, this, clusters, [one.weight for one in labels])
    if found.independent < FEWEST:
        return None
    return AccuracyDifference(
        found.mean,
        found.interval(level),
        min(1.0, comparisons * found.p()),
        found.values.count(1.0),
        found.values.count(-1.0),
        found.evidence("pass rate", margin).claim((1 - level) / comparisons),
    )
