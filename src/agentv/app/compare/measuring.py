"""Results of each measure of a comparison, corrected for multiple testing.

Holm's procedure gives each measure a level of its own. Its interval is drawn at that level and alone decides the
verdict, so that interval, p-value and verdict never disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentv.lazy_dataclass import dataclass
from agentv.model.run.compared.verdicts import Measure, Verdict
from agentv.model.run.comparison import ComparisonSettings, MeasureResult
from agentv.stats.comparison.difference import Differences
from agentv.stats.comparison.holm import rejection_levels
from agentv.stats.comparison.joint import JointTest
from agentv.stats.comparison.noninferiority import verdict
from agentv.stats.power.power import rarest


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measure of the pairs of one comparison."""

    measure: Measure
    differences: Differences

    def may_claim(self, question: ComparisonSettings) -> bool:
        """Whether a measure can show anything: one that changed in too few clusters is not corrected for.

        Source: R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990), 515-522.
        """
        enough = 1 if question.margin else rarest(question.alpha)
        return self.differences.test is not None and self.differences.moved >= enough


def measured(found: Sequence[Measurement], question: ComparisonSettings) -> list[MeasureResult]:
    """Intervals and p-values of these measures, with an error rate of at most alpha over all of them.

    Args:
        found: measures of one comparison, or of several made together.
        question: its alpha applies to all of them together.
    """
    claiming = [one for one in found if one.may_claim(question)]
    p_values = [_p_of_difference(one, question.margin) for one in claiming]
    levels = rejection_levels(p_values, question.alpha)
    level_of = {id(one): level for one, level in zip(claiming, levels, strict=True)}
    shown = [
        replace(_measured(one, level_of.get(id(one), question.alpha), question), tests=max(1, len(claiming)))
        for one in found
    ]
    return shown if question.margin else _in_order(shown, dict(zip(map(id, claiming), p_values, strict=True)), found)


def _in_order(
    shown: Sequence[MeasureResult], p_values: Mapping[int, float], found: Sequence[Measurement]
) -> list[MeasureResult]:
    """The results, where no corrected p-value is below that of a smaller uncorrected one, as in `holm.adjusted`."""
    raised, largest = list(shown), 0.0
    claiming = [place for place, one in enumerate(found) if id(one) in p_values]
    for place in sorted(claiming, key=lambda place: p_values[id(found[place])]):
        result = raised[place]
        largest = max(largest, result.p or 0.0)
        raised[place] = replace(result, p=largest, p_of_claim=max(largest, result.p_of_claim or 0.0))
    return raised


def claimed(found: Sequence[Measurement], question: ComparisonSettings) -> list[Verdict]:
    """The verdicts of `measured` without intervals, which take most of the time; used to simulate plans.

    An interval excludes a value exactly if the p-value at that value is at most the level.
    """
    claiming = [one for one in found if one.may_claim(question)]
    levels = rejection_levels([_p_of_difference(one, question.margin) for one in claiming], question.alpha)
    level_of = {id(one): level for one, level in zip(claiming, levels, strict=True)}
    return [_claim(one.differences, level_of.get(id(one), question.alpha), question.margin) for one in found]


def _claim(found: Differences, level: float, margin: float) -> Verdict:
    test = found.test
    if test is None:
        return "inconclusive"

    def excludes(border: float) -> bool:
        return test.p(border) <= level

    if found.mean > margin and excludes(margin):
        return "better"
    if found.mean < -margin and excludes(-margin):
        return "worse"
    if not margin or not excludes(-margin):
        return "inconclusive"
    return "equivalent" if found.mean < margin and excludes(margin) else "non-inferior"


def _measured(one: Measurement, level: float, question: ComparisonSettings) -> MeasureResult:
    """One measure at its own level of significance."""
    found, test = one.differences, one.differences.test
    if test is None:
        return MeasureResult(one.measure, found.mean, None, None, None, "inconclusive", 1 - question.alpha)
    interval = test.interval(1 - level)
    shown = verdict(*interval, question.margin)
    raised = question.alpha / level
    p, p_of_claim = (min(1.0, raised * p) for p in (test.p(), _p_of_verdict(test, shown, question.margin)))
    return MeasureResult(one.measure, found.mean, interval, p, p_of_claim, shown, 1 - level)


def _p_of_difference(one: Measurement, margin: float) -> float:
    """The p-value of the hypothesis that the difference is at most the margin, either way."""
    found, test = one.differences, one.differences.test
    if test is None or (margin and abs(found.mean) <= margin):
        return 1.0
    return test.p(margin if found.mean > 0 else -margin)


def _p_of_verdict(test: JointTest, shown: Verdict, margin: float) -> float:
    """The p-value of the verdict, held against the borders that it excludes; of no verdict that of any difference."""
    borders: dict[Verdict, tuple[float, ...]] = {
        "better": (margin,),
        "worse": (-margin,),
        "equivalent": (-margin, margin),
        "non-inferior": (-margin,),
    }
    if shown == "inconclusive":
        return test.p() if margin == 0 else 1.0
    return max(test.p(border) for border in borders[shown])
