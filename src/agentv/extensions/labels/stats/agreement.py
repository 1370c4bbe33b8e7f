"""Agreement of people, and of a judge with people."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentv.extensions.labels.stats.posterior import Draws, Estimated, JudgeCounts, JudgeDraws, estimated

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class ConfusionMatrix:
    """Labelled answers by what the judge and what people say. A false pass: the judge passes what people fail."""

    true_passes: int = 0
    false_passes: int = 0
    false_failures: int = 0
    true_failures: int = 0

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> ConfusionMatrix:
        """The matrix of (judge passes, person passes)."""
        found = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
        for pair in pairs:
            found[pair] += 1
        return cls(*found.values())

    @property
    def total(self) -> int:
        """Number of labelled answers."""
        return self.true_passes + self.false_passes + self.false_failures + self.true_failures


@dataclass(frozen=True, slots=True)
class JudgeAccuracy:
    """How well a judge agrees with people, for the answers of the run that the labels were drawn from.

    Attributes:
        tpr: share of what people pass that the judge passes; None: no labelled answer passes.
        tnr: share of what people fail that the judge fails; None: no labelled answer fails.
        accuracy: share of answers on which both agree.
        kappa: Cohen's; None where people, or the judge, say the same of all answers: chance then explains everything.
    """

    tpr: Estimated | None
    tnr: Estimated | None
    accuracy: Estimated
    kappa: Estimated | None


def judge_accuracy(counts: JudgeCounts, seed: int = 0) -> JudgeAccuracy:
    """How well a judge agrees with people. Weighted by the judge's rate: labels need not be drawn in proportion to it.

    The accuracy is the weighted share of labels, as that of every judge beside it, of which differences are taken.

    Raises:
        ValueError: there are no labels.
    """
    of_passed, of_failed = counts.of_passed, counts.of_failed
    if not of_passed.total + of_failed.total:
        raise ValueError("there are no labels")
    draws = JudgeDraws.of(counts, seed)
    some_pass = of_passed.passed + of_failed.passed > 0
    some_fail = of_passed.failed + of_failed.failed > 0
    both_verdicts = of_passed.total > 0 and of_failed.total > 0
    accuracy, right = estimated(draws.accuracy), _share_right(counts)
    return JudgeAccuracy(
        estimated(draws.true_positives) if some_pass else None,
        estimated(draws.true_negatives) if some_fail else None,
        accuracy if right is None else accuracy.at(right),
        estimated(draws.kappa) if some_pass and some_fail and both_verdicts else None,
    )


def _share_right(counts: JudgeCounts) -> float | None:
    """Weighted share of labels that the judge agrees with; None: a verdict that it gave has no label."""
    verdicts = counts.verdicts
    sides = (
        (verdicts.passed, counts.of_passed, counts.of_passed.passed),
        (verdicts.failed, counts.of_failed, counts.of_failed.failed),
    )
    if any(number and not labels.total for number, labels, _ in sides):
        return None
    return sum(number * right / labels.total for number, labels, right in sides if number) / verdicts.total


@dataclass(frozen=True, slots=True)
class LabelledUnit:
    """The labels of one answer: person → whether it passes."""

    labels: Mapping[str, bool]
    cluster: Hashable = None


RESAMPLED = 4000
"""Draws of the Bayesian bootstrap."""


def krippendorff_alpha(units: Iterable[LabelledUnit], seed: int = 0) -> Estimated | None:
    """Krippendorff's alpha of nominal labels: 1 is agreement, 0 what chance gives. Units with one label do not count.

    Source: K. Krippendorff, "Computing Krippendorff's alpha-reliability" (2011). The interval is that of the Bayesian
    bootstrap over clusters of units (D. B. Rubin, Annals of Statistics 9 (1981), 130–134), with one unit more, half
    of it a disagreement: perfect agreement in a few units does not prove that people always agree.

    Returns:
        None: fewer than two units have two labels, or all labels are alike, which leaves alpha undefined.
    """
    counted = [(sum(one.labels.values()), len(one.labels), one.cluster) for one in units if len(one.labels) > 1]
    passes = sum(passed for passed, _, _ in counted)
    if len(counted) < 2 or passes in (0, sum(size for _, size, _ in counted)):
        return None
    import numpy as np

    rows = np.array([_facts(passed, size) for passed, size, _ in counted])
    value = float(_alpha(rows.sum(axis=0, keepdims=True))[0])
    clusters: dict[Hashable, int] = {}
    for place, (_, _, cluster) in enumerate(counted):
        clusters.setdefault((place,) if cluster is None else cluster, len(clusters))
    members = [clusters[(place,) if cluster is None else cluster] for place, (_, _, cluster) in enumerate(counted)]
    summed = np.zeros((len(clusters), 3))
    np.add.at(summed, members, rows)
    prior = np.array([_facts(1, 2), _facts(2, 2), _facts(0, 2)])
    sources = np.concatenate([summed, prior])
    shape = np.concatenate([np.ones(len(clusters)), (0.5, 0.25, 0.25)])
    chance = np.random.default_rng(seed)
    drawn = np.empty(RESAMPLED)
    for start in range(0, RESAMPLED, 500):  # so that a hundred thousand labels fit into memory
        drawn[start : start + 500] = _alpha(chance.standard_gamma(shape, (500, len(shape))) @ sources)
    return estimated(drawn).at(value)


def _facts(passed: int, size: int) -> tuple[float, float, float]:
    """Of a unit: its passes, its labels, and its disagreeing pairs as the coincidence matrix counts them."""
    return passed, size, 2 * passed * (size - passed) / (size - 1)


def _alpha(summed: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Draws:
    """1 − observed / expected disagreement, of each row of summed facts."""
    passed, total, disagreeing = summed.T
    return 1 - disagreeing * (total - 1) / (2 * passed * (total - passed))


def majority(labels: Iterable[bool]) -> bool | None:
    """What more than half of the labels say; None: a tie, or no label."""
    found = list(labels)
    passes = sum(found)
    return None if 2 * passes == len(found) else 2 * passes > len(found)


def mean_pairwise_agreement(units: Sequence[LabelledUnit]) -> float | None:
    """Share of pairs of labels of one answer that agree; None: no answer has two labels."""
    agreed = pairs = 0
    for unit in units:
        size, passes = len(unit.labels), sum(unit.labels.values())
        pairs += size * (size - 1) // 2
        agreed += (passes * (passes - 1) + (size - passes) * (size - passes - 1)) // 2
    return agreed / pairs if pairs else None
