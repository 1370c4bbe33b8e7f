"""Accuracy of several judges on the same labelled answers, and the paired differences between them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import fsum, inf
from typing import TYPE_CHECKING

from agentv.lazy_dataclass import dataclass
from agentv.stats.intervals.design_effect import DRAWN
from agentv.stats.judges.agreement import JudgeAccuracy, judge_accuracy
from agentv.stats.judges.posterior import (
    JEFFREYS,
    LEVEL,
    Estimated,
    JudgeCounts,
    JudgedAnswer,
    JudgeDraws,
    Observation,
    counted,
    estimated,
    judge_counts,
)

if TYPE_CHECKING:
    from agentv.stats.comparison.winloss import WinLoss
    from agentv.stats.judges.posterior import Draws

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


def accuracy_of(
    labels: Sequence[PersonLabel],
    verdicts: Sequence[bool],
    counts: JudgeCounts | None = None,
    *,
    drawn_by: bool = False,
    seed: int = 0,
) -> JudgeAccuracy:
    """How well verdicts agree with labels.

    Labels that were drawn from what some judge passed, and from what it failed, are weighted by how often it did so: in
    each of the four groups of answers by that judge's verdict and by people's, the share that this judge passes has
    Jeffreys' prior. For the judge that they were drawn by this is `judge_accuracy`.

    Args:
        labels: by people, at least one.
        verdicts: of the judge, one for each label.
        counts: of the judge that they were drawn by; None: they were not drawn, and count alike.
        drawn_by: this is the judge that they were drawn by.
        seed: of the draws.

    Raises:
        ValueError: there are no labels, or not as many verdicts.
    """
    if not labels or len(labels) != len(verdicts):
        raise ValueError(f"no pairs: {len(labels)} labels, {len(verdicts)} verdicts")
    if counts is None:
        pairs = zip(labels, verdicts, strict=True)
        return judge_accuracy(judge_counts(JudgedAnswer(verdict, one.passed, one.cluster) for one, verdict in pairs))
    if drawn_by and all(one.drawn_from is verdict for one, verdict in zip(labels, verdicts, strict=True)):
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
        estimated(agreed),
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
class AccuracyDifference:
    """The accuracy of a judge less that of another, on the same answers.

    Attributes:
        estimate: with its interval, corrected for the number of comparisons.
        p_value: two-sided, that both are as accurate, corrected likewise.
        only_this, only_other: answers on which only this judge, and only the other, says what people say.
    """

    estimate: Estimated
    p_value: float
    only_this: int
    only_other: int


def accuracy_difference(
    labels: Sequence[PersonLabel],
    verdicts: Sequence[bool],
    others: Sequence[bool],
    comparisons: int = 1,
    level: float = LEVEL,
) -> AccuracyDifference | None:
    """How much more accurate a judge is than another one, by a paired test.

    The difference is that of the weighted shares of right verdicts. A value is rejected if both Tango's score test and
    the sign-flip test reject it, which is McNemar's exact test at zero. Labels of unequal weight, and clusters, count
    with a design effect. Several comparisons are corrected by Bonferroni, so that p-values and intervals agree.

    Args:
        labels: by people.
        verdicts: of the judge, one for each label.
        others: those of the judge that it is compared with.
        comparisons: how many are made.
        level: the confidence of all intervals together.

    Returns:
        None: fewer than six clusters.
    """
    from agentv.stats.comparison.joint import JointTest
    from agentv.stats.comparison.sign_flips import SignFlips

    moved = [
        float((verdict is one.passed) - (other is one.passed))
        for one, verdict, other in zip(labels, verdicts, others, strict=True)
    ]
    weights = [one.weight for one in labels]
    members: dict[Hashable, list[int]] = {}
    for place, one in enumerate(labels):
        members.setdefault((place,) if one.cluster is None else one.cluster, []).append(place)
    if len(members) < FEWEST:
        return None
    sums = [fsum(moved[place] * weights[place] for place in places) for places in members.values()]
    sizes = [fsum(weights[place] for place in places) for places in members.values()]
    score = _score_test(moved, weights, sums, sizes)
    test = JointTest(score.difference, [score, SignFlips(sums, sizes)])
    low, high = test.interval(1 - (1 - level) / comparisons)
    return AccuracyDifference(
        Estimated(test.mean, low, high),
        min(1.0, comparisons * test.p()),
        moved.count(1.0),
        moved.count(-1.0),
    )


def _score_test(
    moved: Sequence[float], weights: Sequence[float], sums: Sequence[float], sizes: Sequence[float]
) -> WinLoss:
    """Tango's test of the weighted shares of wins and losses.

    The design effect is Kish's of unequal weights, or the observed one if that is larger: variance of the weighted mean
    by its linearization over that of as many independent answers. Few clusters that moved tell the observed one badly,
    so it is drawn towards the largest possible, as in `comparison.difference`.
    """
    from agentv.stats.comparison.winloss import WinLoss

    count, total = len(moved), fsum(weights)
    wins, losses = (
        fsum(weight for one, weight in zip(moved, weights, strict=True) if one == sign) / total * count
        for sign in (1.0, -1.0)
    )
    ties = max(0.0, count - wins - losses)
    weighted = [size / total for size in sizes]
    largest = count * fsum(one * one for one in weighted)
    if len(sizes) == count and max(weights) == min(weights):
        return WinLoss(wins, losses, ties)
    kish = count * fsum(weight * weight for weight in weights) / total**2
    mean = (wins - losses) / count
    spread = fsum(weight * (one - mean) ** 2 for one, weight in zip(moved, weights, strict=True)) / total / count
    variance = fsum((one - size * mean) ** 2 for one, size in zip(sums, sizes, strict=True)) / total**2
    shown = variance / spread if spread else largest
    changed = sum(one != 0 for one in sums)
    drawn = shown + max(0.0, largest - shown) * DRAWN / (DRAWN + changed)
    clustered = len(sizes) < count
    return WinLoss(wins, losses, ties, max(1.0, kish, drawn), len(sizes) - 1 if clustered else inf)
