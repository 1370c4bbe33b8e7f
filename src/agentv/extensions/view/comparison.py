"""Comparisons of two or more runs with the cases that changed, and the trend of a suite over its runs.

Numbers and sentences are those of `agentv compare` and `agentv trend`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from heapq import nlargest, nsmallest
from itertools import islice
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from agentv.app.compare.comparing import compare_each
from agentv.app.results.project import Project
from agentv.app.trend import suites_with_runs, targets_of, trend
from agentv.errors import UsageError
from agentv.extensions.view.case_index import CaseIndex
from agentv.extensions.view.cases import ViewedCase
from agentv.extensions.view.growing import GrowingRun
from agentv.extensions.view.shown_comparison import ShownComparison, shown_of
from agentv.model.run.comparison import CaseKey, CasePair, Comparison, ComparisonSettings
from agentv.model.run.runs import Followed
from agentv.reports.text import without_directories
from agentv.reports.trend import findings, notes, trend_data

MOST_MOVED = 200
"""Maximum number of cases that got worse, or better, in a response; all are counted."""

CHANGES = ("worse", "better", "lower", "higher", "same", "unjudged", "edited", "added", "gone")
"""The ways in which a case can have changed."""

_WORSE, _BETTER = frozenset({"worse", "lower"}), frozenset({"better", "higher"})


class ComparedRun(Struct, frozen=True):
    """One of the compared runs."""

    run_id: str
    targets: tuple[str, ...] = ()


class ChangedCase(Struct, frozen=True):
    """A case in both runs.

    Attributes:
        change: `worse` if it passed and now fails, `better` if it failed and now passes; `lower` or `higher` if only
            the score changed.
    """

    case: ViewedCase
    base: ViewedCase
    change: str


class CaseName(Struct, frozen=True):
    """Identifies a case by names."""

    suite: str
    id: str
    target: str
    prompt: str | None
    variant: str | None


class ViewedComparison(Struct, frozen=True):
    """A comparison of a candidate with a base.

    Attributes:
        comparison: verdict and basis, with the sentences of `agentv compare`.
        counts: number of cases by change.
        moved: changed cases: those that got worse, the worst first, then those that got better, the best first.
        gone: cases that only the base has.
    """

    base: ComparedRun
    candidate: ComparedRun
    comparison: ShownComparison
    counts: dict[str, int]
    moved: list[ChangedCase]
    gone: list[CaseName]


def viewed_comparison(runs: tuple[str, str], base: GrowingRun, candidate: GrowingRun) -> ViewedComparison:
    """The comparison of two runs, or the reason why it is not possible.

    Raises:
        StoreError: a run cannot be read.
    """
    (found,) = compared(base, [candidate])
    if isinstance(found, UsageError):
        return refused_comparison(runs, found)
    worse = [pair for pair in found.pairs if change_of(pair) in _WORSE][:MOST_MOVED]  # pairs are sorted, worst first
    better = [pair for pair in found.pairs if change_of(pair) in _BETTER][-MOST_MOVED:]
    moved: list[ChangedCase] = []
    with base.index() as before, candidate.index() as after:
        for pair in (*worse, *reversed(better)):
            earlier, case = case_at(before, pair.before.places), case_at(after, pair.after.places)
            if earlier is not None and case is not None:
                moved.append(ChangedCase(case, earlier, change_of(pair)))
    return comparison_view(runs, found, moved)


def compared(base: GrowingRun, candidates: Sequence[GrowingRun]) -> list[Comparison | UsageError]:
    """Each candidate's comparison with the base, or the error that prevents it, as in `agentv compare`."""
    return compare_each(str(base.path), [str(one.path) for one in candidates], ComparisonSettings(limit=0))


def refused_comparison(runs: tuple[str, str], error: UsageError) -> ViewedComparison:
    """The result for two runs that cannot be compared, with the reason."""
    refused = ShownComparison("", without_directories(str(error)))
    base_run, candidate_run = map(ComparedRun, runs)
    return ViewedComparison(base_run, candidate_run, refused, dict.fromkeys(CHANGES, 0), [], [])


def comparison_view(runs: tuple[str, str], found: Comparison, moved: list[ChangedCase]) -> ViewedComparison:
    """A comparison in the form that pages show, with the given changed cases."""
    gone = [
        CaseName(key.suite, key.case_id, key.target, key.prompt, key.variant)
        for key in islice(found.left_out.only_base, MOST_MOVED)
    ]
    before_run, after_run = ComparedRun(runs[0], found.base.targets), ComparedRun(runs[1], found.candidate.targets)
    return ViewedComparison(before_run, after_run, shown_of(found), counts_of(found), moved, gone)


def counts_of(found: Comparison) -> dict[str, int]:
    """Number of cases by change."""
    left = found.left_out
    counts = dict.fromkeys(CHANGES, 0)
    for pair in found.pairs:
        counts[change_of(pair)] += 1
    counts["unjudged"] += len(left.errored) + len(left.unfinished)
    counts["edited"], counts["added"], counts["gone"] = len(left.edited), len(left.only_candidate), len(left.only_base)
    return counts


def change_of(pair: CasePair) -> str:
    """The change of a case, one of `CHANGES`."""
    if "errored" in (pair.before.status, pair.after.status):
        return "unjudged"
    if pair.broken or pair.fixed:
        return "worse" if pair.broken else "better"
    return "same" if not pair.delta or pair.by_verdict else "lower" if pair.delta < 0 else "higher"


def case_at(index: CaseIndex, places: Iterable[int]) -> ViewedCase | None:
    """The case with a row at one of these places, or None if the index does not have it yet."""
    for place in places:
        number = index.trial_at(place)
        case = None if number is None else index.case_of(number)
        for entry in index.entries([] if case is None else [case]):
            return ViewedCase.of(entry)
    return None


class CaseInRun(Struct, frozen=True):
    """A case of the base in one of the other runs.

    Attributes:
        change: change as in a comparison of two runs, or `left out` if the case is not compared.
        case: the case in this run; null if the run does not have it or it is not compared.
    """

    change: str
    case: ViewedCase | None = None


class MovedCase(Struct, frozen=True):
    """A case that changed.

    Attributes:
        direction: `worse` if it got worse in at least one of the runs, otherwise `better`.
        base: the case in the base.
        runs: the case in each of the other runs, in their order.
    """

    direction: Literal["worse", "better"]
    base: ViewedCase
    runs: list[CaseInRun]


class MovedCases(Struct, frozen=True):
    """A comparison of several runs with one base.

    Attributes:
        comparisons: comparison of each run with the base, with an empty `moved`.
        worse: number of cases that got worse in at least one of the runs.
        better: number of other cases that got better in at least one of the runs.
        moved: these cases, up to a limit for each direction: the worst first, then the best.
    """

    comparisons: list[ViewedComparison]
    worse: int
    better: int
    moved: list[MovedCase]


def moved_cases(ids: Sequence[str], runs: Sequence[GrowingRun]) -> MovedCases:
    """The cases of the first run that changed in the others.

    Raises:
        StoreError: a run cannot be read.
    """
    base, *candidates = runs
    found = compared(base, candidates)
    named = [(ids[0], other) for other in ids[1:]]
    verdicts = [
        refused_comparison(both, one) if isinstance(one, UsageError) else comparison_view(both, one, [])
        for both, one in zip(named, found, strict=True)
    ]
    worse, better = _directions([one for one in found if isinstance(one, Comparison)])
    first = nsmallest(MOST_MOVED, worse, key=worse.__getitem__)
    last = nlargest(MOST_MOVED, better, key=better.__getitem__)
    columns = [_Column(one, {*first, *last}) for one in found]
    with ExitStack() as stack:
        before, *after = (stack.enter_context(run.index()) for run in runs)
        rows = [
            *(_row("worse", key, columns, before, after) for key in first),
            *(_row("better", key, columns, before, after) for key in last),
        ]
    return MovedCases(verdicts, len(worse), len(better), [row for row in rows if row is not None])


def _directions(found: Sequence[Comparison]) -> tuple[Mapping[CaseKey, float], Mapping[CaseKey, float]]:
    """Cases that got worse in any run, with the largest loss, and the others that got better, with the largest gain."""
    worse: dict[CaseKey, float] = {}
    better: dict[CaseKey, float] = {}
    for one in found:
        for pair in one.pairs:
            change, key = change_of(pair), pair.before_key
            if change in _WORSE:
                worse[key] = min(worse.get(key, 0.0), pair.delta)
            elif change in _BETTER:
                better[key] = max(better.get(key, 0.0), pair.delta)
    return worse, {key: gain for key, gain in better.items() if key not in worse}


class _Column:
    """The comparison of one run with the base, limited to the shown cases."""

    def __init__(self, found: Comparison | UsageError, shown: set[CaseKey]) -> None:
        self._found = found
        self.pairs: dict[CaseKey, CasePair] = {}
        if isinstance(found, Comparison):
            self.pairs = {pair.before_key: pair for pair in found.pairs if pair.before_key in shown}

    def cell(self, key: CaseKey, after: CaseIndex) -> CaseInRun:
        pair = self.pairs.get(key)
        if pair is not None:
            return CaseInRun(change_of(pair), case_at(after, pair.after.places))
        return CaseInRun("left out" if isinstance(self._found, UsageError) else _why_left_out(key, self._found))


def _why_left_out(key: CaseKey, found: Comparison) -> str:
    """Why a case is not compared, as far as its names in the base tell: its target may differ in the other run."""
    left = found.left_out
    if key in left.only_base:
        return "gone"
    if key in left.edited:
        return "edited"
    return "unjudged" if key in left.errored or key in left.unfinished else "left out"


def _row(
    direction: Literal["worse", "better"],
    key: CaseKey,
    columns: Sequence[_Column],
    before: CaseIndex,
    after: Sequence[CaseIndex],
) -> MovedCase | None:
    pair = next(column.pairs[key] for column in columns if key in column.pairs)
    base = case_at(before, pair.before.places)
    if base is None:
        return None
    cells = [column.cell(key, index) for column, index in zip(columns, after, strict=True)]
    return MovedCase(direction, base, cells)


class TrendQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which runs.

    Attributes:
        suite: name of the suite; empty for the first one.
        last: number of runs, counted from the newest.
        measure: measure to follow.
        target: name of the target; empty for the first one of the newest run.
    """

    suite: str = ""
    last: Annotated[int, Meta(ge=1, le=10_000)] = 20
    measure: Literal["pass_rate", "mean_score"] = "pass_rate"
    target: str = ""


class ViewedTrend(Struct, frozen=True):
    """A suite's trend.

    Attributes:
        suites: all suites with results.
        suite: the shown suite; empty without results.
        targets: all targets that ran the suite.
        target: the shown target.
        findings: what the runs show, in sentences.
        notes: limitations of these findings.
        data: data as in `agentv trend --json`, or null.
        problem: why there is no data.
    """

    suites: list[str]
    suite: str
    targets: list[str] = []
    target: str = ""
    findings: list[str] = []
    notes: list[str] = []
    data: dict[str, Any] | None = None
    problem: str = ""


def viewed_trend(project: Project, query: TrendQuery) -> ViewedTrend:
    """The trend of a suite of the project.

    Raises:
        StoreError: the files of a run cannot be read.
    """
    suites = suites_with_runs(project.root)
    suite = query.suite or next(iter(suites), "")
    if not suite:
        return ViewedTrend([], "", problem="no run has ended yet")
    measure: Followed = "pass rate" if query.measure == "pass_rate" else "mean score"
    targets = targets_of(suite, project.root)
    target = query.target or next(iter(targets), "")
    try:
        found = trend(suite, query.last, measure, project.root, target)
    except UsageError as error:
        problem = without_directories(f"{error}; {error.hint}" if error.hint else str(error))
        return ViewedTrend(suites, suite, targets, target, problem=problem)
    return ViewedTrend(suites, suite, targets, target, list(findings(found)), notes(found), trend_data(found))
