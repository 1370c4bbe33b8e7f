"""Results of each measure of a comparison: intervals of each alone, verdicts corrected for all tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from agentv.model.run.compared.verdicts import Measure
from agentv.model.run.comparison import ComparisonSettings, MeasureResult
from agentv.stats.comparison.difference import Differences
from agentv.stats.comparison.rule import levels


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measure of the pairs of one comparison."""

    measure: Measure
    differences: Differences


def measured(found: Sequence[Measurement], question: ComparisonSettings) -> list[MeasureResult]:
    """Verdicts and p-values of these measures, with an error rate of at most alpha over all of them (Holm).

    Args:
        found: measures of one comparison, or of several made together.
        question: its alpha applies to all of them together.
    """
    evidence = [one.differences.evidence(one.measure, question.margin) for one in found]
    tests = max(1, sum(one.may_claim(question.alpha) for one in evidence))
    results, corrected = [], []
    for one, seen, level in zip(found, evidence, levels(evidence, question.alpha), strict=True):
        shown, raised = seen.claim(level), question.alpha / level
        p = min(1.0, raised * (one.differences.p() if question.margin else seen.p))
        interval = one.differences.interval(1 - question.alpha)
        of_claim = min(1.0, raised * seen.p_of(shown))
        delta = one.differences.mean
        plain = one.differences.plain_interval(1 - question.alpha)
        results.append(
            MeasureResult(one.measure, delta, interval, p, of_claim, shown, 1 - question.alpha, tests, plain=plain)
        )
        corrected.append(seen.p)
    if question.margin:
        return results
    largest = 0.0  # no corrected p-value is below that of a smaller uncorrected one, as in Holm's procedure
    for place in sorted(range(len(found)), key=corrected.__getitem__):
        if evidence[place].may_claim(question.alpha):
            largest = max(largest, results[place].p)
            results[place] = replace(results[place], p=largest, p_of_claim=largest)
    return results
