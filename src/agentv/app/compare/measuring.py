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

        At a margin, one that did not change at all can show equivalence. A pass rate that did not is not counted beside
        its mean score, since a verdict takes both.

        Source: R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990), 515-522.
        """
        found = self.differences
        if found.test is None:
            return False
        if question.margin:
            return self.measure != "pass rate" or found.moved > 0
        return found.moved >= rarest(question.alpha)


def measured(found: Sequence[Measurement], question: ComparisonSettings) -> list[MeasureResult]:
    """Intervals and p-values of these measures, with an error rate of at most alpha over all of them.

    Args:
        found: measures of one comparison, or of several made together.
        question: its alpha applies to all of them together.
    """
    claiming = [one for one in found if one.may_claim(question)]
    shown = [
        replace(_measured(one, level, question), tests=max(1, len(claiming)))
        for one, level in zip(found, _levels(found, question), strict=True)
    ]
    if question.margin:
        return shown
    return _in_order(shown, {id(one): _p_of_difference(one, question.margin) for one in claiming}, found)


def _levels(found: Sequence[Measurement], question: ComparisonSettings) -> list[float]:
    """The level of each measure by Holm's procedure; one that is not counted has that of the mean score before it."""
    claiming = [one for one in found if one.may_claim(question)]
    p_values = [_p_of_difference(one, question.margin) for one in claiming]
    level_of = dict(zip(map(id, claiming), rejection_levels(p_values, question.alpha), strict=True))
    levels: list[float] = []
    for one in found:
        beside = levels[-1] if question.margin and one.measure == "pass rate" and levels else question.alpha
        levels.append(level_of.get(id(one), beside))
    return levels


def _in_order(
    shown: Sequence[MeasureResult], p_values: Mapping[int, float], found: Sequence[Measurement]
) -> list[MeasureResult]:
    """The results, where no corrected p-value is below that of a smaller uncorrected one, as in `holm.adjusted`."""
    raised, largest = list(shown), 0.0
    claiming = [place for place, one in enumerate(found) if id(one) in p_values]
    for place in sorted(claiming, key=lambda place: p_values[id(found[place])]):
        largest = max(largest, raised[place].p or 0.0)
        raised[place] = replace(raised[place], p=largest, p_of_claim=largest)
    return raised


def claimed(found: Sequence[Measurement], question: ComparisonSettings) -> list[Verdict]:
    """The verdicts of `measured` without intervals, which take most of the time; used to simulate plans.

    An interval excludes a value exactly if the p-value at that value is at most the level.
    """
    levels = _levels(found, question)
    return [_claim(one.differences, level, question.margin) for one, level in zip(found, levels, strict=True)]


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
