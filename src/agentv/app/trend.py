"""`agentv trend`: the complete runs of one suite on one target, each compared with the one before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.compare.gathering import cases_of, differences
from agentv.app.compare.matching import ChosenCases, KeyedCases, Matched, SharedValues, match, shared_names
from agentv.app.results.deleting import pinned_runs
from agentv.app.results.listing import listed_run
from agentv.app.results.place import RESULTS, partial_in, project_with, runs_in
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import StoreError, UsageError
from agentv.model.run.comparison import CasePair
from agentv.model.run.runs import Followed, LeftOutRun, RunDifference, RunState, Trend, TrendRun
from agentv.model.run.summary import Summary
from agentv.model.values.formatting import plural
from agentv.model.values.values import JsonObject, objects_in
from agentv.reports.text import listed
from agentv.stats.difference import Differences, difference_at, level_at
from agentv.stats.verdicts import Part, cluster_of_pair, same_rate
from agentv.store.files.directory import INDEX, RUN, is_being_written, read_document, results_directory
from agentv.store.journal.verification import check_rows
from agentv.store.rows.reading import read_placed_rows, read_rows, replaced_lines
from agentv.store.totals.summary import PlannedCounts, summarize

_STORED_ANSWERS = {"regrade": "graded stored answers (--regrade)", "replay": "graded stored answers (--replay)"}
"""Settings of runs that did not call the target for every case, with the reason to show."""


class _Run(Struct, frozen=True):
    """A run with results of the suite.

    Attributes:
        targets: the targets on which the run ran the suite.
        problem: why the run is not complete; None if it is.
    """

    path: Path
    record: JsonObject
    targets: tuple[str, ...]
    problem: str | None

    @property
    def settings(self) -> Mapping[str, Any]:
        found = self.record.get("settings")
        return found if isinstance(found, Mapping) else {}

    @property
    def run_id(self) -> str:
        return self.path.name


def suites_with_runs(root: Path) -> list[str]:
    """Return the sorted names of the suites that a project's runs have results of.

    Raises:
        StoreError: the files of a run cannot be read.
    """
    return sorted({name for path in runs_in(results_directory(root)) for name in _suites(path)})


def targets_of(suite: str, root: Path) -> list[str]:
    """Return the names of the targets on which a project's runs ran a suite, newest first.

    Raises:
        StoreError: the files of a run cannot be read.
    """
    runs = reversed(list(_runs_of(suite, results_directory(root))))
    return list(dict.fromkeys(name for run in runs for name in run.targets))


def trend(
    suite: str | None, last: int, measure: Followed, root: Path | None = None, target: str | None = None
) -> Trend:
    """Return the newest complete runs of a suite on a target, each with its difference from the one before it.

    Args:
        suite: name of the suite; None: the project's only suite.
        last: maximum number of runs.
        measure: the pass rate or the mean score.
        root: of the project; None: that of the working directory.
        target: name of the target; None: the only target of the newest complete run.

    Raises:
        UsageError: there is no complete run of the suite on the target, or the choice of suite or target is ambiguous.
        StoreError: the files of a run cannot be read.
    """
    root = root or project_with(RESULTS)
    results = results_directory(root)
    if suite is None:
        suites = suites_with_runs(root)
        if not suites:
            raise UsageError(f"no finished run in {shown(str(results))}")
        if len(suites) > 1:
            raise UsageError(f"found runs of {len(suites)} suites", f"choose one with --suite: {listed(suites)}")
        suite = suites[0]
    runs = list(_runs_of(suite, results))
    target = target if target is not None else _only_target(suite, runs)
    whole: list[_Run] = []
    left_out: list[LeftOutRun] = []
    for run in runs:
        problem = next(_problems(run, target, measure), None)
        if problem is None:
            whole.append(run)
        else:
            left_out.append(LeftOutRun(run.run_id, problem))
    series = _Series(suite, target, measure)
    first = max(0, len(whole) - last)
    found: list[TrendRun] = []
    for place, run in enumerate(whole[first:], first):
        found.append(series.run(run, whole[place - 1] if found else None, place))
    if not found:
        raise _no_runs_error(suite, target, runs, left_out, results)
    pinned = [one for one in pinned_runs(results) if one in {run.run_id for run in whole}]
    baseline = pinned[-1] if pinned else found[0].run_id
    return Trend(
        suite,
        target,
        measure,
        tuple(found),
        first,
        baseline,
        bool(pinned),
        series.from_baseline(
            next(run for run in whole if run.run_id == baseline), whole[-1], len(whole) - 1, found[-1]
        ),
        tuple(left_out),
    )


def _suites(path: Path) -> Sequence[str]:
    """Return the suites that a run has results of; () for a run that is still being written."""
    if is_being_written(path):
        return ()
    summary = listed_run(path).summary
    return () if summary is None else tuple(summary.by_suite)


def _runs_of(suite: str, results: Path) -> Iterator[_Run]:
    """Yield the runs of the suite, oldest first."""
    for path in runs_in(results):
        record = read_document(path / RUN)
        of_suite = [one for one in objects_in(record.get("suites")) if one.get("name") == suite]
        found = listed_run(path)
        ran = found.summary.by_suite if found.summary is not None else {}
        if not of_suite and suite not in ran:
            continue
        named = [str(one["name"]) for entry in of_suite for one in objects_in(entry.get("targets")) if "name" in one]
        by_target = found.summary.by_target if found.summary is not None else {}
        targets = tuple(dict.fromkeys(one for one in named if not by_target or one in by_target)) or tuple(by_target)
        yield _Run(path, record, targets, _unfinished(found.state, found.problem, found.summary))


def _unfinished(state: RunState, problem: str | None, summary: Summary | None) -> str | None:
    if state == "unreadable":
        return problem or "cannot be read"
    if state == "being written":
        return "is still running"
    if state == "interrupted" or summary is None or summary.cut is not None:
        return "did not run all of its cases"
    return None


def _problems(run: _Run, target: str, measure: Followed) -> Iterator[str]:
    """Yield the reasons why a run is not part of the series."""
    if run.targets and target not in run.targets:
        yield f"ran on {listed(run.targets)}"
    if run.problem is not None:
        yield run.problem
    if (partial := partial_in(run.record)) is not None:
        yield f"ran {partial.badge} ({' '.join(f'--{name}' for name in partial.why)})"
    for name, why in _STORED_ANSWERS.items():
        if run.settings.get(name) not in (None, [], False):
            yield why
    if run.settings.get("rerun") == "failed":
        yield "ran its failed cases again (--rerun failed)"
    if not run.settings.get("cache") and measure == "pass rate":
        return
    rows = list(read_rows(run.path / INDEX))
    if run.settings.get("cache") and all(row.reused for row in rows):
        yield "graded stored answers (--cache)"
    if measure == "mean score" and any(row.alpha is not None and row.repeat > 1 for row in rows):
        yield "sampled each case until decided, which biases mean scores (--until decided)"


class _Series:
    """Reads the runs of a suite and target and compares them, keeping the cases of the previous run."""

    def __init__(self, suite: str, target: str, measure: Followed) -> None:
        self._suite, self._target, self._measure = suite, target, measure
        self._common = SharedValues()
        self._read: tuple[_Run, KeyedCases] | None = None

    def run(self, run: _Run, before: _Run | None, position: int) -> TrendRun:
        """Return a run with its change from the one before it."""
        rows = [row for row in read_rows(run.path / INDEX) if (row.suite, row.target) == (self._suite, self._target)]
        totals = summarize(rows, run_id=run.run_id, planned=PlannedCounts(), duration_ms=0.0)
        by_rate = self._measure == "pass rate"
        value = totals.pass_rate if by_rate else totals.mean_score
        if value is None:
            raise StoreError(f"{run.run_id}: no case of the suite '{self._suite}' was judged")
        commit = run.record.get("git_commit")
        found = TrendRun(
            run.run_id,
            commit if isinstance(commit, str) else None,
            value,
            totals.pass_rate_interval if by_rate else totals.mean_score_interval,
            totals.cases.passed + totals.cases.failed,
            totals.cases.total,
        )
        earlier, cases = self._read, self._cases(run)
        self._read = (run, cases)
        if before is None or earlier is None:
            return found
        matched = match(earlier[1], cases)
        change = self._difference(before, matched, position)
        return replace(found, change=change, notes=tuple(self._notes(before, run, matched)))

    def from_baseline(self, baseline: _Run, latest: _Run, position: int, found: TrendRun) -> RunDifference | None:
        """Return the difference of the latest run from the baseline, or None if the baseline is the latest run."""
        if baseline is latest or (found.change is not None and found.change.before == baseline.run_id):
            return None if baseline is latest else found.change
        matched = match(self._cases(baseline), self._cases(latest))
        return self._difference(baseline, matched, position, from_baseline=True)

    def _cases(self, run: _Run) -> KeyedCases:
        if self._read is not None and self._read[0] is run:
            return self._read[1]
        check_rows(run.path)
        rows = read_placed_rows(run.path / INDEX, replaced_lines(run.path / INDEX))
        mine = ((at, row) for at, row in rows if (row.suite, row.target) == (self._suite, self._target))
        cases = cases_of(mine, common=self._common)
        chosen = ChosenCases(cases, range(len(cases)))
        return KeyedCases(chosen, shared_names([chosen.places]))

    def _difference(
        self, before: _Run, matched: Matched, position: int, *, from_baseline: bool = False
    ) -> RunDifference | None:
        by_rate = self._measure == "pass rate"
        pairs, errored = (
            [pair for pair in of if not by_rate or same_rate(pair)] for of in (matched.pairs, matched.errored)
        )
        if not pairs:
            return None
        part = Part(pairs, errored)

        def measured(of: Iterable[CasePair]) -> Differences:
            taken = [
                (pair.rates if by_rate else (pair.before.score or 0.0, pair.after.score or 0.0), cluster_of_pair(pair))
                for pair in of
            ]
            return Differences([b for (b, _), _ in taken], [a for (_, a), _ in taken], [c for _, c in taken])

        unsure = bool(errored) or any(pair.errored for pair in pairs)
        bounds = (measured(part.filled(1, 0)), measured(part.filled(0, 1))) if unsure else None
        level = level_at(position, from_baseline=from_baseline)
        return difference_at(before.run_id, measured(pairs), level, bounds)

    def _notes(self, before: _Run, run: _Run, matched: Matched) -> Iterator[str]:
        """Yield notes about other differences between two runs."""
        left = matched.left_out
        counts = {
            "edited": len(left.edited),
            "new": len(left.only_candidate),
            "gone": len(left.only_base),
            "errored or not run": len(left.errored) + len(left.unfinished),
        }
        if parts := ", ".join(f"{number} {what}" for what, number in counts.items() if number):
            yield f"cases: {parts}; these are not compared"
        if self._target_settings(before) != self._target_settings(run):
            yield "other settings of the target"
        yield from differences(before.record, run.record)
        yield from matched.settings.notes()

    def _target_settings(self, run: _Run) -> Any:
        named = [one for one in objects_in(run.record.get("suites")) if one.get("name") == self._suite]
        return [one for suite in named for one in objects_in(suite.get("targets")) if one.get("name") == self._target]


def _only_target(suite: str, runs: Sequence[_Run]) -> str:
    """Return the target of the newest complete run, else of the newest run."""
    named = [run for run in runs if run.targets]
    newest = next(reversed([run for run in named if run.problem is None] or named), None)
    targets = newest.targets if newest is not None else ("",)
    if len(targets) > 1:
        what = f"the newest run of suite '{suite}' has {len(targets)} targets"
        raise UsageError(what, f"choose one with --target: {listed(targets)}")
    return targets[0]


def _no_runs_error(
    suite: str, target: str, runs: Sequence[_Run], left_out: Sequence[LeftOutRun], results: Path
) -> UsageError:
    where = shown(str(results))
    if not runs:
        known = {name for path in runs_in(results) for name in _suites(path)}
        return UsageError(f"no run of suite '{suite}' in {where}", did_you_mean(suite, known))
    targets = sorted({name for run in runs for name in run.targets})
    if targets and target not in targets:
        near = did_you_mean(target, targets)
        all_of_them = f"the suite's targets: {listed(targets)}"
        what = f"no run of suite '{suite}' in {where} has a target '{target}'"
        return UsageError(what, f"{near} {all_of_them}" if near else all_of_them)
    newest = left_out[-1]
    on = f" on '{target}'" if target else ""
    return UsageError(
        f"no whole run of suite '{suite}'{on} in {where}: {plural(len(left_out), 'run')} left out",
        f"the newest, {newest.run_id}, {newest.reason}",
    )
