"""`agentv trend`: how a suite's results moved over its last runs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from agentv.app.results.finding import runs_in
from agentv.app.results.place import RESULTS, place_holding
from agentv.app.results.totals import totals_document
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import StoreError, UsageError
from agentv.lazy_dataclass import dataclass
from agentv.stats.intervals.proportion import interval_at
from agentv.stats.series.series import Change, Context, Measure, Paired, Point, Trend, error_of_mean, error_of_rate
from agentv.store.files.directory import INDEX, RUN, SUMMARY, is_being_written, read_document, results_directory
from agentv.store.journal.run_inputs import InputsCache, SuiteInputs, read_suite_inputs
from agentv.store.journal.verification import check_rows

_SHOWN = 20
"""Names that a message lists."""


def suites_with_runs(root: Path) -> list[str]:
    """Names of the suites that a project's runs have results of, sorted.

    Raises:
        StoreError: the files of a run cannot be read.
    """
    return sorted(_Runs(results_directory(root)).suites())


def trend(suite: str | None, last: int, measure: Measure, root: Path | None = None, target: str | None = None) -> Trend:
    """The last runs of a suite, out of those of a project, and how they moved.

    Runs that are still being written, were killed, or judged nothing are passed over and counted; so are those whose
    answers were there before, those of `--last-failed`, and of mean scores those whose samples ended early.

    Args:
        suite: its name; None: the only one that there is.
        last: how many runs at most.
        measure: what of a run is followed.
        root: of the project; None: that of the working directory.
        target: whose results alone are followed; None: those of all targets together. Runs of several suites do not
            say what a target came to in one of them: they are passed over and counted.

    Raises:
        UsageError: there is no run of the suite or of the target, or the suite must be named.
        StoreError: the files of a run cannot be read.
    """
    results = results_directory(root or place_holding(RESULTS))
    runs = _Runs(results, target)
    name = suite if suite is not None else _only_suite(runs, results)
    found = list(islice(runs.points(name, measure), last))
    if not found:
        raise _nothing(runs, name, results, target)
    context = Context(
        runs.passed_over,
        runs.not_new,
        runs.ended_early,
        runs.last_failed,
        tuple(reversed(runs.changes)),
        runs.undivided,
    )
    whole = Trend.of(name, measure, list(reversed(found)), context, runs.paired(len(found), measure))
    return replace(whole, target=target)


def target_values(found: Trend, root: Path) -> dict[str, list[float | None]]:
    """Target → what it came to in each run of a trend, where the run says so; empty where all runs have one target.

    Raises:
        StoreError: the files of a run cannot be read.
    """
    values: dict[str, list[float | None]] = {}
    key = "pass_rate" if found.measure == "pass rate" else "mean_score"
    for place, point in enumerate(found.points):
        groups = _target_groups(totals_document(results_directory(root) / point.run_id) or {}) or {}
        for name, group in groups.items():
            value = group.get(key) if isinstance(group, Mapping) else None
            if isinstance(value, int | float):
                values.setdefault(name, [None] * len(found.points))[place] = float(value)
    return values if len(values) > 1 else {}


class _Runs:
    """The summaries of a repository's runs, newest first.

    Attributes:
        passed_over: runs that were met and have nothing to say.
        not_new: those whose answers were another run's, or a cassette's.
        ended_early: those whose samples ended as soon as a case was decided.
        last_failed: those of `--last-failed`.
        undivided: those that do not say what the target came to in the suite.
        changes: from each run to the one before it, the newest first.
    """

    def __init__(self, results: Path, target: str | None = None) -> None:
        self._target = target
        self._paths = runs_in(results)[::-1]
        self._cache: InputsCache = {}
        self._begin()

    def _begin(self) -> None:
        self.passed_over = self.not_new = self.ended_early = self.last_failed = self.undivided = 0
        self.changes: list[Change] = []
        self._judged_inputs: list[SuiteInputs] = []

    def paired(self, count: int, measure: Measure) -> Paired:
        """The cases of the newest runs that were given, each compared with itself.

        An edited case, or one with another threshold, counts as a new case; for scores the threshold does not matter.
        """
        by_rate = measure == "pass rate"
        clusters: dict[Hashable, Hashable] = {}
        runs: list[dict[Hashable, float]] = []
        for inputs in reversed(self._judged_inputs[:count]):
            values: dict[Hashable, float] = {}
            for name, found in inputs.judged.items():
                key = name if by_rate else (*name[:-1], None)
                values[key] = found.rate if by_rate else found.mean
                clusters[key] = found.cluster
            runs.append(values)
        return Paired(runs, clusters)

    def suites(self) -> set[str]:
        """The names of all suites."""
        return {name for _, summary in self._summaries() for name in _groups(summary)}

    def targets(self, suite: str) -> set[str]:
        """The names of the targets that ran a suite."""
        names: set[str] = set()
        for path, summary in self._summaries():
            if suite in _groups(summary):
                groups = _target_groups(summary)
                names.update(_recorded_targets(path, suite) if groups is None else groups)
        return names

    def points(self, suite: str, measure: Measure) -> Iterator[Point]:
        """The point of each run of a suite."""
        self._begin()
        newer: _TrendRun | None = None
        for path, summary in self._summaries():
            group = self._group(summary, suite)
            if group is None:
                continue
            if summary.get("cut") is not None:  # the cases that ran are no random part of all
                self.passed_over += 1
                continue
            run = _TrendRun.of(path, suite, self._cache, self._target)
            if run.is_not_new:
                self.not_new += 1
            elif run.is_of_failures:  # its rate is that of the hardest cases
                self.last_failed += 1
            elif run.inputs.ends_early and measure == "mean score":
                self.ended_early += 1
            elif (point := _point(run, group, measure)) is None:
                self.passed_over += 1
            else:
                if newer is not None and (change := newer.change_from(run)) != Change(newer.run_id):
                    self.changes.append(change)
                self._judged_inputs.append(run.inputs)
                newer = run
                yield point

    def _group(self, summary: Mapping[str, Any], suite: str) -> Any:
        """The results of the suite, or of the target in it; None: the run has none, or does not tell."""
        group = _groups(summary).get(suite)
        if group is None or self._target is None:
            return group
        targets = _target_groups(summary)
        self.undivided += targets is None
        return (targets or {}).get(self._target)

    def _summaries(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        for path in self._paths:
            summary = None if is_being_written(path) else totals_document(path)
            if summary is None:
                self.passed_over += 1
            else:
                yield path, summary


def _groups(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    groups = summary.get("by_suite")
    return groups if isinstance(groups, Mapping) else {}


def _target_groups(summary: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Target → its results; None: the run has several suites, whose results these are together."""
    groups = summary.get("by_target")
    if len(_groups(summary)) > 1:
        return None
    return groups if isinstance(groups, Mapping) else {}


@dataclass(frozen=True, slots=True)
class _TrendRun:
    """Inputs of a suite in one run.

    Attributes:
        is_not_new: its answers were another run's, or a cassette's.
        is_of_failures: only cases ran that had not passed before.
        targets: how they are set up, as `run.json` has it, and how they are named.
    """

    run_id: str
    inputs: SuiteInputs
    is_not_new: bool
    is_of_failures: bool
    targets: tuple[object, ...]

    @classmethod
    def of(cls, path: Path, suite: str, cache: InputsCache, target: str | None = None) -> _TrendRun:
        """Of a run's directory."""
        check_rows(path)
        record, inputs = (
            read_document(path / RUN),
            read_suite_inputs(path / INDEX, cache, target).get(suite, SuiteInputs()),
        )
        settings = record.get("settings")
        recorded = settings if isinstance(settings, Mapping) else {}
        copies = (
            recorded.get("regrade")
            or recorded.get("replay")
            or (recorded.get("cache") and inputs.hashes and inputs.is_reused)
        )
        targets = (_targets(record, suite, target), frozenset(inputs.targets))
        return cls(path.name, inputs, bool(copies), isinstance(recorded.get("last_failed"), list), targets)

    def change_from(self, before: _TrendRun) -> Change:
        """Changes since another run; empty if either has no rows."""
        then, now = before.inputs.hashes, self.inputs.hashes
        if not then or not now:
            return Change(self.run_id)
        both = then.keys() & now.keys()
        edited = sum(then[case] != now[case] for case in both)
        other = self.targets != before.targets
        rules = tuple(_rule_changes(before.inputs.rules, self.inputs.rules))
        return Change(self.run_id, edited, len(now) - len(both), len(then) - len(both), other, rules)


def _rule_changes(before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> Iterator[str]:
    for name, now in after.items():
        then = before.get(name, now)
        if then != now:
            yield f"{name} {'/'.join(sorted(then))} → {'/'.join(sorted(now))}"


def _targets(record: Mapping[str, Any], suite: str, target: str | None) -> object:
    suites = record.get("suites")
    found = suites if isinstance(suites, list) else []
    there = [one.get("targets") for one in found if isinstance(one, Mapping) and one.get("name") == suite]
    if target is None:
        return there
    each = [one for targets in there if isinstance(targets, list) for one in targets]
    return [one for one in each if isinstance(one, Mapping) and one.get("name") == target]


def _recorded_targets(path: Path, suite: str) -> Iterator[str]:
    """The names of a suite's targets, as `run.json` has them."""
    suites = read_document(path / RUN).get("suites")
    for one in suites if isinstance(suites, list) else ():
        targets = one.get("targets") if isinstance(one, Mapping) and one.get("name") == suite else None
        for target in targets if isinstance(targets, list) else ():
            if isinstance(target, Mapping) and isinstance(target.get("name"), str):
                yield target["name"]


def _point(run: _TrendRun, group: Mapping[str, Any], measure: Measure) -> Point | None:
    """None where nothing was judged."""
    try:
        cases = group["cases"]
        judged, total = cases["passed"] + cases["failed"], cases["total"]
        value = group["pass_rate" if measure == "pass rate" else "mean_score"]
        if value is None:
            return None
        means = run.inputs.means
        if measure == "mean score" and means:
            return Point(run.run_id, float(value), None, judged, total, error_of_mean(means))
        alone = group.get("judged") or judged
        clusters = min(alone, len(means) or alone, group.get("interval_clusters") or alone)
        given = group.get("pass_rate_interval", interval_at(float(value), judged) if judged else None)
        interval = _interval(given) if measure == "pass rate" else None
        return Point(run.run_id, float(value), interval, judged, total, error_of_rate(float(value), clusters))
    except (KeyError, TypeError, ValueError) as failure:
        raise StoreError(f"{run.run_id}: its {SUMMARY} was not written by agentv: {failure}") from failure


def _interval(found: Any) -> tuple[float, float] | None:
    """The interval that the run's own report shows; None where it has none."""
    if found is None:
        return None
    low, high = found
    return float(low), float(high)


def _only_suite(runs: _Runs, results: Path) -> str:
    suites = sorted(runs.suites())
    if not suites:
        raise _nothing(runs, None, results)
    if len(suites) > 1:
        names = ", ".join(suites[:_SHOWN])
        raise UsageError(f"found runs of {len(suites)} suites", f"choose one with --suite: {names}")
    return suites[0]


def _nothing(runs: _Runs, suite: str | None, results: Path, target: str | None = None) -> UsageError:
    of = "" if suite is None else f" of suite '{suite}'"
    reasons = {
        "unfinished, interrupted or without a verdict": runs.passed_over,
        "with reused answers": runs.not_new,
        "with samples that ended early": runs.ended_early,
        "of --last-failed": runs.last_failed,
        "of several suites": runs.undivided,
    }
    over = "; ".join(f"{count} {why}" for why, count in reasons.items() if count)
    over = f" ({over})" if over else ""
    where, known = shown(str(results)), runs.suites()
    if suite is not None and target is not None and suite in known:
        targets = sorted(runs.targets(suite))
        if targets and target not in targets:
            return UsageError(f"no run{of} in {where} has a target '{target}'", _those_known(target, targets))
        of += f" with target '{target}'"
    near = None if suite is None or suite in known else did_you_mean(suite, known)
    return UsageError(f"no run{of} in {where} can be used{over}", near)


def _those_known(target: str, known: Sequence[str]) -> str:
    """The nearest target, and those that there are."""
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    listed = f"the suite's targets: {', '.join(known[:_SHOWN])}{more}"
    near = did_you_mean(target, known)
    return f"{near} {listed}" if near else listed
