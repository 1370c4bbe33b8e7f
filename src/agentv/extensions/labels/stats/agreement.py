"""Agreement of people, and of a judge with people."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from agentv.extensions.labels.stats.posterior import Estimated, JudgeCounts, JudgeDraws, estimated


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


def majority(labels: Iterable[bool]) -> bool | None:
    """What more than half of the labels say; None: a tie, or no label."""
    found = list(labels)
    passes = sum(found)
    return None if 2 * passes == len(found) else 2 * passes > len(found)


def mean_pairwise_agreement(units: Iterable[Collection[bool]]) -> float | None:
    """Share of pairs of labels of one answer that agree; None: no answer has two labels."""
    agreed = pairs = 0
    for unit in units:
        size, passes = len(unit), sum(unit)
        pairs += size * (size - 1) // 2
        agreed += (passes * (passes - 1) + (size - passes) * (size - passes - 1)) // 2
    return agreed / pairs if pairs else None
