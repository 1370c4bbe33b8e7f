"""`agentv trend`: how a suite's results moved over its last runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from agentv.errors import StoreError, UsageError
from agentv.spec.files import repository_root, shown
from agentv.spec.nearest import did_you_mean
from agentv.stats.proportion import wilson_interval
from agentv.stats.series import Measure, Point, Trend
from agentv.store.directory import RUN, SUMMARY, is_being_written, read_document, results_directory


def trend(suite: str | None, last: int, measure: Measure) -> Trend:
    """The last runs of a suite, out of those of the working directory's repository, and how they moved.

    Runs that are still being written, were killed, or judged nothing are passed over and counted.

    Args:
        suite: its name; None: the only one that there is.
        last: how many runs at most.
        measure: what of a run is followed.

    Raises:
        UsageError: there is no run of the suite, or it must be named.
        StoreError: the summary of a run cannot be read.
    """
    results = results_directory(Path(repository_root(str(Path.cwd()))))
    runs = _Runs(results)
    name = suite if suite is not None else _only_suite(runs, results)
    found = list(islice(runs.points(name, measure), last))
    if not found:
        raise _nothing(runs, name, results)
    return Trend.of(name, measure, list(reversed(found)), runs.passed_over)


class _Runs:
    """The summaries of a repository's runs, newest first.

    Attributes:
        passed_over: runs that were met and have nothing to say.
    """

    def __init__(self, results: Path) -> None:
        found = (path for path in results.iterdir() if (path / RUN).is_file()) if results.is_dir() else ()
        self._paths = sorted(found, key=_begun, reverse=True)
        self.passed_over = 0

    def suites(self) -> set[str]:
        """The names of all suites."""
        return {name for _, summary in self._summaries() for name in _groups(summary)}

    def points(self, suite: str, measure: Measure) -> Iterator[Point]:
        """What each run of a suite came to."""
        self.passed_over = 0
        for path, summary in self._summaries():
            group = _groups(summary).get(suite)
            if group is None:
                continue
            point = _point(path.name, group, measure)
            if point is None:
                self.passed_over += 1
            else:
                yield point

    def _summaries(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        for path in self._paths:
            if not (path / SUMMARY).is_file() or is_being_written(path):
                self.passed_over += 1
                continue
            yield path, read_document(path / SUMMARY)


def _begun(run: Path) -> tuple[str, int]:
    """When a run began, to the second by its id; within one by what was written last."""
    second, _, _ = run.name.partition("-")
    return second, (run / RUN).stat().st_mtime_ns


def _groups(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    groups = summary.get("by_suite")
    return groups if isinstance(groups, Mapping) else {}


def _point(run_id: str, group: Mapping[str, Any], measure: Measure) -> Point | None:
    """None where nothing was judged."""
    try:
        cases = group["cases"]
        passed, judged, total = cases["passed"], cases["passed"] + cases["failed"], cases["total"]
        value = group["pass_rate" if measure == "pass rate" else "mean_score"]
        if value is None or not judged:
            return None
        interval = wilson_interval(passed, judged) if measure == "pass rate" else None
        return Point(run_id, float(value), interval, judged, total)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{run_id}: its {SUMMARY} is not one of agentv's: {error}") from error


def _only_suite(runs: _Runs, results: Path) -> str:
    suites = sorted(runs.suites())
    if not suites:
        raise _nothing(runs, None, results)
    if len(suites) > 1:
        raise UsageError(f"there are runs of {len(suites)} suites", f"name one with --suite: {', '.join(suites[:20])}")
    return suites[0]


def _nothing(runs: _Runs, suite: str | None, results: Path) -> UsageError:
    of = "" if suite is None else f" of suite '{suite}'"
    over = (
        f" ({runs.passed_over} are still being written, were cut short or judged nothing)" if runs.passed_over else ""
    )
    near = "" if suite is None else did_you_mean(suite, runs.suites())
    return UsageError(f"no run{of} in {shown(str(results))} can be used{over}", near or None)
