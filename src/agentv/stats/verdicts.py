"""Verdicts over pairs of cases: better, worse, equivalent, non-inferior, or inconclusive (SPEC section 10).

The mean score and the pass rate both decide. A mean can rise while every case starts to fail, because of a gate with
little weight or a threshold that is just missed, and it can fall while all cases still pass. Errored samples give
bounds: a verdict is given only if it holds whether they would have failed or passed.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import isnan, nan
from statistics import fmean

from msgspec.structs import replace

from agentv.model.run.comparison import (
    CaseOutcome,
    CasePair,
    ComparisonSettings,
    Fill,
    Judgement,
    Level,
    MeasureResult,
    Moves,
)
from agentv.model.run.matrix import RESOURCES, Measure, UsageDifference, Verdict, Withheld
from agentv.stats.difference import Differences
from agentv.stats.intervals.means import mean_interval
from agentv.stats.rule import combined, levels

LIKELY_CHANCE = 0.5
"""P-value above which the number of cases needed is not reported, since the difference is more likely chance."""


@dataclass(frozen=True, slots=True)
class Part:
    """Pairs of two runs, or of one suite or tag of them, that are judged together.

    Attributes:
        pairs: cases with a score in both runs; some of their samples may have errored.
        errored: cases without a score in one of the runs, because of an error.
    """

    pairs: Sequence[CasePair]
    errored: Sequence[CasePair] = ()

    def filled(self, before: Fill, after: Fill) -> Iterator[CasePair]:
        """All pairs, as if every errored sample had the score `before` in the base and `after` in the candidate."""
        return (pair.filled(before, after) for pair in chain(self.pairs, self.errored))


class _Side:
    """Scores, pass rates and usage of the cases of one run over some pairs."""

    def __init__(self) -> None:
        self.scores, self.rates = array("d"), array("d")
        self.usage = {resource: array("d") for resource in RESOURCES}
        self.passed = 0

    def add(self, case: CaseOutcome, rate: float) -> None:
        self.scores.append(case.score or 0.0)
        self.rates.append(rate)
        for column, used in zip(self.usage.values(), case.usage, strict=True):
            column.append(nan if used is None else used)
        self.passed += case.status == "passed"

    @property
    def level(self) -> Level:
        return Level(fmean(self.scores), self.passed, fmean(self.rates))


class _Tally:
    """Totals of pairs that a judgement is based on, collected in one pass.

    Attributes:
        cases: number of distinct cases.
        clusters: number of the cluster of each pair.
        by_verdict: whether all pairs are compared by their verdicts.
        rules_differ: whether some of them are, though the two runs decided them by different rules.
        same_rate: whether the pass rates of both runs can be compared.
        same_rule: whether both runs derive verdicts from samples by the same rules.
        errored: number of pairs with an errored sample.
    """

    def __init__(self, pairs: Iterable[CasePair]) -> None:
        self.before, self.after = _Side(), _Side()
        self.clusters = array("I")
        self.outcomes = {"win": 0, "loss": 0, "tie": 0}
        self.fixed = self.broken = self.errored = 0
        known: dict[Hashable, int] = {}
        cases: set[Hashable] = set()
        settings = Settings()
        for pair in pairs:
            self._add(pair)
            cases.add(_case(pair))
            self.clusters.append(known.setdefault(cluster_of_pair(pair), len(known)))
            settings.add(pair)
        self.cases = len(cases)
        self.by_verdict = all(pair.by_verdict for pair in settings)
        self.rules_differ = any(pair.by_verdict and not same_rule(pair) for pair in settings)
        self.same_rate = all(same_rate(pair) for pair in settings)
        self.same_rule = all(same_rule(pair) for pair in settings)

    def __len__(self) -> int:
        return len(self.clusters)

    def _add(self, pair: CasePair) -> None:
        before, after = pair.rates
        self.before.add(pair.before, before)
        self.after.add(pair.after, after)
        self.outcomes[pair.outcome] += 1
        self.fixed += pair.fixed
        self.broken += pair.broken
        self.errored += pair.errored

    @cached_property
    def measurements(self) -> list[Measurement]:
        """The mean score and, unless every score equals its verdict or the rates cannot be compared, the pass rate."""
        measure: Measure = "share of cases that passed" if self.by_verdict else "mean score"
        score = Measurement(measure, Differences(self.before.scores, self.after.scores, self.clusters))
        as_one = self.before.scores == self.before.rates and self.after.scores == self.after.rates
        if not self.same_rate or as_one:
            return [score]
        return [score, Measurement("pass rate", Differences(self.before.rates, self.after.rates, self.clusters))]

    def usage(self, level: float) -> Iterator[UsageDifference]:
        """Usage per case in both runs; cost is listed as unknown if only tokens are known."""
        counts_tokens = not all(map(isnan, chain(self.before.usage["tokens"], self.after.usage["tokens"])))
        for resource in RESOURCES:
            columns = self.before.usage[resource], self.after.usage[resource], self.clusters
            known = [one for one in zip(*columns, strict=True) if not isnan(one[1] - one[0])]
            cases, unknown = len(known), len(self) - len(known)
            if known:
                before, after, clusters = zip(*known, strict=True)
                found = mean_interval([new - old for old, new, _ in known], clusters, level=level)
                interval = (found.low, found.high) if found.clusters > 1 else None
                yield UsageDifference(
                    resource, cases, unknown, fmean(before), fmean(after), found.mean, interval, level
                )
            elif resource == "cost_usd" and counts_tokens:
                yield UsageDifference(resource, 0, unknown)


@dataclass(frozen=True, slots=True)
class _Decision:
    """Verdict over some pairs, before errors are taken into account."""

    measures: tuple[MeasureResult, ...]
    verdict: Verdict
    withheld: Withheld | None

    def shown_by(self, verdict: Verdict) -> tuple[Measure, ...]:
        """The measures that support the verdict."""
        if verdict == "inconclusive":
            return ()
        claims = ("better", "worse")
        return tuple(one.measure for one in self.measures if verdict not in claims or one.verdict == verdict)


def judge(pairs: Sequence[CasePair], question: ComparisonSettings, errored: Sequence[CasePair] = ()) -> Judgement:
    """Judge the pairs of one comparison, at least one."""
    return judge_parts([Part(pairs, errored)], question)[0]


def judge_parts(parts: Sequence[Part], question: ComparisonSettings) -> list[Judgement]:
    """Judge each part, with an error rate of at most alpha over all parts. Each part has at least one pair.

    Only a single part gets a plan (the detectable difference and the number of cases needed).
    """
    question = replace(question, plan=question.plan and len(parts) == 1)
    tallies = [_Tally(part.pairs) for part in parts]
    judged = _decided(tallies, question)
    # numbers of cases whose outcome an errored sample could change
    unknown = [tally.errored + len(part.errored) for tally, part in zip(tallies, parts, strict=True)]
    if question.errored != "bounds" or not any(unknown):
        return [_judgement(*each, None, question) for each in zip(tallies, unknown, judged, strict=True)]
    worst = _decided([_Tally(part.filled(1, 0)) for part in parts], question)
    best = _decided([_Tally(part.filled(0, 1)) for part in parts], question)
    return [
        _judgement(tally, errored, one, bounds if errored else None, question)
        for tally, errored, one, *bounds in zip(tallies, unknown, judged, worst, best, strict=True)
    ]


def _decided(tallies: Sequence[_Tally], question: ComparisonSettings) -> list[_Decision]:
    """The decision of each part, with the p-values of all parts corrected together."""
    intervals = iter(measured([one for tally in tallies for one in tally.measurements], question))
    return [_decision(tuple(next(intervals) for _ in tally.measurements), tally) for tally in tallies]


def _decision(measures: tuple[MeasureResult, ...], tally: _Tally) -> _Decision:
    """The decision from one or two measures."""
    if tally.rules_differ:
        return _Decision(measures, "inconclusive", "settings")  # their scores are verdicts, which depend on the rule
    return _Decision(measures, *combined([one.verdict for one in measures]))


_NOT_WORSE: frozenset[Verdict] = frozenset({"better", "equivalent", "non-inferior"})
"""Verdicts in the candidate's worst case that make it non-inferior."""


def _bounded(one: _Decision, worst: _Decision, best: _Decision) -> tuple[Verdict, Withheld | None]:
    """The verdict that holds whether errored samples would have failed or passed."""
    not_worse = worst.verdict in _NOT_WORSE
    holds: dict[Verdict, bool] = {
        "better": worst.verdict == "better",
        "worse": best.verdict == "worse",
        "equivalent": worst.verdict == best.verdict == "equivalent",
        "non-inferior": not_worse,
        "inconclusive": True,
    }
    if holds[one.verdict]:
        return one.verdict, one.withheld
    return ("non-inferior", None) if not_worse and one.verdict != "worse" else ("inconclusive", "errors")


def _judgement(
    tally: _Tally, errored: int, one: _Decision, bounds: Sequence[_Decision] | None, question: ComparisonSettings
) -> Judgement:
    found = tally.measurements[0].differences
    verdict, withheld = _bounded(one, *bounds) if bounds else (one.verdict, one.withheld)
    score, *rates = _with_bounds(one, bounds) if bounds else one.measures
    detectable, needed = _planned(tally, verdict, question)
    return Judgement(
        pairs=len(tally),
        cases=tally.cases,
        clusters=found.independent,
        before=tally.before.level,
        after=tally.after.level,
        moves=Moves(
            tally.outcomes["win"],
            tally.outcomes["loss"],
            tally.outcomes["tie"],
            tally.fixed,
            tally.broken,
            tally.same_rule,
        ),
        score=score,
        rate=rates[0] if rates else None,
        verdict=verdict,
        shown_by=one.shown_by(verdict),
        tested=one.measures[0].tests,
        detectable=detectable,
        needed=needed,
        rates_compare=tally.same_rate,
        errored=errored,
        withheld=withheld,
        usage=tuple(tally.usage(1 - question.alpha)),
    )


def _with_bounds(one: _Decision, bounds: Sequence[_Decision]) -> list[MeasureResult]:
    """The measures, each with its difference in the worst and in the best case for the candidate."""
    by_name = [{each.measure: each for each in bound.measures} for bound in bounds]
    return [
        replace(each, bounds=(ends[0], ends[1]))
        for each in one.measures
        if (ends := [bound.get(each.measure, next(iter(bound.values()))).delta for bound in by_name])
    ]


def cluster_of_pair(pair: CasePair) -> Hashable:
    """Cluster of a pair: its conversation or the cluster that the user named, else its case on all targets."""
    return pair.before.cluster or _case(pair)


def _case(pair: CasePair) -> Hashable:
    return pair.before_key.suite, pair.before_key.case_id


def _planned(tally: _Tally, verdict: Verdict, question: ComparisonSettings) -> tuple[float | None, int | None]:
    """The smallest difference that this many cases show, and the number that would show the observed one, simulated.

    The second is None if the difference is more likely chance, or if no practical number of cases would show it.
    """
    if verdict != "inconclusive" or not question.plan or tally.rules_differ:
        return None, None
    from agentv.stats.power import BETTER, Population

    population = Population.of([(one.measure, one.differences) for one in tally.measurements])
    detectable = population.detectable(population.observed, question.alpha)
    if all(one.differences.p() > LIKELY_CHANCE for one in tally.measurements):
        return detectable, None
    risen = population if population.mean > 0 else population.swapped
    return detectable, risen.needed(BETTER, question.alpha, question.margin)


@dataclass(frozen=True, slots=True)
class Measurement:
    """Paired differences of one measure of a comparison."""

    measure: Measure
    differences: Differences


def measured(found: Sequence[Measurement], question: ComparisonSettings) -> list[MeasureResult]:
    """Verdicts and p-values of the measures, with an error rate of at most alpha over all of them (Holm).

    Args:
        found: measures of one comparison, or of several comparisons made together.
        question: settings of the comparison; its alpha applies to all measures together.
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


_CONSEQUENCES = {
    "threshold": "pass rates are not compared",
    "repeat": "case verdicts are not compared",
    "aggregate": "case verdicts are not compared",
}
"""What is not compared if a setting differs.

A lower threshold passes more of the same answers. More samples can turn a case that passes six times in ten from a coin
toss into a failure although the target is the same.
"""


class Settings:
    """The combinations of judging and sampling settings of some pairs, with the number of pairs of each."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], tuple[CasePair, int]] = {}

    def add(self, pair: CasePair) -> None:
        """Add a pair."""
        before, after = pair.before, pair.after
        settings = (
            *(before.threshold, before.repeat, before.aggregate, before.alpha),
            *(after.threshold, after.repeat, after.aggregate, after.alpha),
        )
        one, number = self._found.get(settings, (pair, 0))
        self._found[settings] = one, number + 1

    def __iter__(self) -> Iterator[CasePair]:
        """Iterate over one pair for each combination."""
        return (pair for pair, _ in self._found.values())

    def notes(self) -> Iterator[str]:
        """Sentences on settings that differ between the two runs, and on what is not compared as a result."""
        pairs = sum(number for _, number in self._found.values())
        for what, of in _SETTINGS.items():
            found: Counter[tuple[str, str]] = Counter()
            for pair, number in self._found.values():
                found[of(pair.before), of(pair.after)] += number
            for (before, after), number in found.items():
                if before != after:
                    cases = f"{number} of {pairs} cases"
                    yield f"the {what} differs in {cases} ({before} → {after}); {_CONSEQUENCES[what]}"
        decided = [(pair, number) for pair, number in self._found.values() if pair.by_verdict]
        if decided:
            alike = all(same_rule(pair) for pair, _ in decided)
            yield (
                f"{sum(number for _, number in decided)} of {pairs} cases were sampled until decided; stopping "
                "early biases their mean scores, so their verdicts are compared instead, as 1 or "
                f"0{'' if alike else ', which requires the same rule in both runs'}"
            )


def same_rate(pair: CasePair) -> bool:
    """Whether the pass rates of both runs are comparable: those of samples, or of the verdicts of decided cases."""
    return same_rule(pair) if pair.by_verdict else _threshold(pair.before) == _threshold(pair.after)


def same_rule(pair: CasePair) -> bool:
    """Whether both runs derive a case's verdict from its samples by the same rule."""
    return all(of(pair.before) == of(pair.after) for of in _SETTINGS.values())


def _threshold(case: CaseOutcome) -> str:
    return f"{case.threshold:g}"


def _repeat(case: CaseOutcome) -> str:
    return str(case.repeat) if case.alpha is None else f"at most {case.repeat} until decided at {case.alpha:g}"


_SETTINGS: Mapping[str, Callable[[CaseOutcome], str]] = {
    "threshold": _threshold,
    "repeat": _repeat,
    "aggregate": lambda case: case.aggregate,
}
