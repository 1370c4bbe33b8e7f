"""The list of a project's runs, and the open runs with their indexes."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentv.app.results.listing import listed_run
from agentv.app.results.project import Project, check_files, stamp_of
from agentv.authoring.source.files import repository_root
from agentv.errors import AgentvError, StoreError
from agentv.extensions.view.cases import StatusCounts
from agentv.extensions.view.growing import GrowingRun
from agentv.model.run.matrix import Interval
from agentv.model.run.runs import LONGEST_NAME, RunState
from agentv.model.run.summary import PartialRun
from agentv.model.values.formatting import shorten
from agentv.model.values.usage import total_cost
from agentv.model.values.values import JsonObject
from agentv.reports.text import safe, without_directories
from agentv.store.files.directory import INDEX, RUN, is_being_written, read_document

_MOST_OPEN = 8
"""Maximum number of open runs; the least recently used one is closed to open another."""

_PAUSE_S = 0.02
"""Pause between two batches of rows that are read in the background, so that requests come first."""


class OpenRuns:
    """Opens the runs of a project on request. A thread reads their remaining rows in the background.

    Attributes:
        notify: called with notes for the person who started the server.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.notify: Callable[[str], None] = lambda _: None
        self._noted = False
        self._directory = tempfile.TemporaryDirectory(prefix="agentv-view-")
        self._runs: OrderedDict[Path, GrowingRun] = OrderedDict()
        self._numbers = count()
        self._lock = Lock()
        self._ended = Event()
        self._reader: Thread | None = None

    def run(self, run_id: str) -> GrowingRun:
        """The run with an id, with as many rows read as a short time allows.

        Raises:
            NoSuchRunError: no run has this id.
            StoreError: its files cannot be read.
        """
        return self.opened(self.project.run(run_id))

    def opened(self, path: Path) -> GrowingRun:
        """The run in a directory; see `run`."""
        check_files(path)
        with self._lock:
            found = self._runs.get(path)
            closed = []
            if found is None:
                closed = [self._runs.pop(one) for one in list(self._runs) if not one.is_dir()]  # deleted elsewhere
                temporary = Path(self._directory.name, f"{next(self._numbers)}.sqlite")
                found = self._runs[path] = GrowingRun(path, repository_root(str(path.parent)), temporary)
            self._runs.move_to_end(path)
            closed += [self._runs.popitem(last=False)[1] for _ in range(len(self._runs) - _MOST_OPEN)]
        for one in closed:
            one.close()
        if found.catch_up().indexed < 1 or found.can_be_stored:
            with self._lock:
                if self._reader is None or not self._reader.is_alive():
                    self._reader = Thread(target=self._read_all, name="agentv-view-rows", daemon=True)
                    self._reader.start()
        return found

    def is_open(self, path: Path) -> bool:
        """Whether a run is open, that is, was requested recently."""
        with self._lock:
            return path in self._runs

    def forget(self, path: Path) -> None:
        """Close a run whose files are deleted."""
        with self._lock:
            found = self._runs.pop(path, None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """Close all runs and stop the thread."""
        self._ended.set()
        if self._reader is not None:
            self._reader.join(timeout=1)
        for path in list(self._runs):
            self.forget(path)
        with suppress(OSError):
            self._directory.cleanup()

    def _note_temporary_index(self, run: Path) -> None:
        if not self._noted:
            self._noted = True
            self.notify(
                f"note: no index can be written in {safe(str(run))}: it is kept in {self._directory.name} until the"
                " server stops, and made again at the next start"
            )

    def _read_all(self) -> None:
        broken: set[GrowingRun] = set()
        while not self._ended.is_set():
            with self._lock:
                runs = list(self._runs.values())
            behind = [run for run in runs if run not in broken and run.changed()]
            storable = [run for run in runs if run not in broken and run.can_be_stored]
            if not behind and not storable:
                return
            for run in behind or storable[:1]:
                try:
                    run.catch_up(0)
                    if not behind and not run.store_index():
                        self._note_temporary_index(run.path)
                except (AgentvError, OSError, sqlite3.Error):  # the next request gets the error
                    broken.add(run)
            time.sleep(_PAUSE_S)


ViewedState = Literal["running", "finished", "interrupted", "unreadable"]
RunSort = Literal["started", "name", "pass_rate", "cost", "duration", "cases"]
MOST = 500
"""Maximum number of runs per page."""

_LARGE_BYTES = 64 << 20
"""Size of the rows, in bytes, from which a run in progress is listed without its pass rate until it is opened, because
the rate needs an index, which costs time and memory."""


class ViewedRun(Struct, frozen=True):
    """A run in the list.

    Attributes:
        name: name given to the run; "" for none.
        problem: why it cannot be read; "" if nothing is wrong.
        started: start time in ISO 8601; "" if unknown.
        tags: tags of its cases.
        done, planned: number of trials with a row, and of planned trials; null if unknown.
        cases: distinct cases by status; null if not known yet.
        total: number of cases.
        cost_usd: cost, including judges.
        partial: which part of its suites ran; null for all cases.
        failed_gates: number of failed gates.
        trend: pass rates of earlier finished full runs of the same suites and targets, at most 12, oldest first.
    """

    run_id: str
    name: str
    state: ViewedState
    problem: str
    started: str
    suites: tuple[str, ...]
    targets: tuple[str, ...]
    tags: tuple[str, ...]
    done: int
    planned: int | None
    cases: StatusCounts | None
    total: int
    pass_rate: float | None
    pass_rate_interval: Interval | None
    cost_usd: float | None
    duration_ms: float | None
    partial: PartialRun | None = None
    trend: tuple[float, ...] = ()
    failed_gates: int = 0


class RunQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which runs, in which order, and which page of them.

    Attributes:
        q: search terms, each of which must occur in the id, the name, or the name of a suite, target or tag.
        after: cursor of the previous page.
    """

    q: str = ""
    tag: str = ""
    suite: str = ""
    target: str = ""
    state: ViewedState | Literal[""] = ""
    sort: RunSort = "started"
    order: Literal["asc", "desc"] = "desc"
    limit: int = 50
    after: str = ""


class RunNames(Struct, frozen=True):
    """Names in the runs of the project."""

    tags: list[str]
    suites: list[str]
    targets: list[str]


class RunPage(Struct, frozen=True):
    """A page of the selected runs.

    Attributes:
        next: cursor of the next page; null on the last page.
        total: number of selected runs.
    """

    runs: list[ViewedRun]
    next: str | None
    total: int
    names: RunNames


def viewed_state(state: RunState) -> ViewedState:
    """The name of a run's state in the API."""
    return "running" if state == "being written" else state


def name_of(record: JsonObject) -> str:
    """The name of a run, truncated to the permitted length, or ""."""
    found = record.get("name")
    return shorten(found, LONGEST_NAME) if isinstance(found, str) else ""


class RunList:
    """The list of a project's runs. A run is read again only if its files changed."""

    def __init__(self, opened: OpenRuns) -> None:
        self._opened = opened
        self._known: dict[Path, tuple[str, ViewedRun]] = {}
        self._lock = Lock()

    def all(self) -> list[ViewedRun]:
        """Every run, newest first."""
        runs = self._opened.project.runs()
        with self._lock:
            for path in [path for path in self._known if path not in set(runs.values())]:
                del self._known[path]
        found = sorted((self._viewed(run_id, path) for run_id, path in runs.items()), key=_start_key)
        return _with_trends(found)[::-1]

    def page(self, query: RunQuery) -> RunPage:
        """The page of runs that a query selects.

        Raises:
            ValueError: the limit is out of range.
        """
        if not 0 < query.limit <= MOST:
            raise ValueError(f"limit must be 1 to {MOST}")
        every = self.all()
        chosen = [one for one in every if _matches(query, one)]
        if query.sort != "started" or query.order == "asc":
            # a stable sort keeps equal runs newest first; runs without the value come last
            known = [one for one in chosen if _SORTS[query.sort](one) is not None]
            unknown = [one for one in chosen if _SORTS[query.sort](one) is None]
            chosen = sorted(known, key=_SORTS[query.sort], reverse=query.order == "desc") + unknown
        start = 0
        if query.after:
            places = [place for place, one in enumerate(chosen) if one.run_id == query.after]
            start = places[0] + 1 if places else len(chosen)
        shown = chosen[start : start + query.limit]
        following = shown[-1].run_id if shown and start + len(shown) < len(chosen) else None
        names = RunNames(
            _sorted(name for run in every for name in run.tags),
            _sorted(name for run in every for name in run.suites),
            _sorted(name for run in every for name in run.targets),
        )
        return RunPage(shown, following, len(chosen), names)

    def _viewed(self, run_id: str, path: Path) -> ViewedRun:
        try:
            check_files(path)
            going = is_being_written(path)
            stamp = f"{stamp_of(path)} {going} {going and self._opened.is_open(path)}"
        except StoreError as error:
            return _unreadable(run_id, str(error))
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        try:
            found = self._read(run_id, path)
        except AgentvError as error:
            return _unreadable(run_id, str(error))
        with self._lock:
            self._known[path] = (stamp, found)
        return found

    def _read(self, run_id: str, path: Path) -> ViewedRun:
        listed = listed_run(path)
        if listed.state == "unreadable":
            return _unreadable(run_id, listed.problem or "its files cannot be read")
        record = read_document(path / RUN)
        started = record.get("started")
        found = replace(
            _UNKNOWN,
            run_id=run_id,
            name=name_of(record),
            state=viewed_state(listed.state),
            started=started if isinstance(started, str) else "",
            suites=listed.suites,
            targets=listed.targets,
            done=listed.done,
            planned=listed.planned,
            duration_ms=listed.duration_ms,
            partial=listed.partial,
        )
        if listed.summary is not None:
            found = _with_totals(found, listed.summary.as_json())
        if listed.state != "being written" or not self._is_indexed(path):
            return found
        with suppress(StoreError):
            run = self._opened.opened(path)
            summary = run.totals(record)
            with run.index() as index:
                counts, trials = StatusCounts.of(index.counts), index.trials
            found = replace(found, done=trials, cases=counts, total=sum(msgspec.structs.astuple(counts)))
            if summary is not None:
                found = _with_totals(found, summary.as_json())
        return found

    def _is_indexed(self, path: Path) -> bool:
        """Whether the rows of a run in progress are few or already open, so that its index may be used."""
        try:
            return (path / INDEX).stat().st_size < _LARGE_BYTES or self._opened.is_open(path)
        except OSError:
            return True


_TREND = 12
"""Maximum number of earlier runs whose pass rates are shown with a run."""


def _start_key(run: ViewedRun) -> str:
    """The start time of a run in the format of run ids, as a sort key."""
    return run.started.replace("-", "").replace(":", "") or run.run_id


def _with_trends(runs: Sequence[ViewedRun]) -> list[ViewedRun]:
    """Add the pass rates of earlier runs to runs that are sorted by age, oldest first."""
    rates: dict[tuple[tuple[str, ...], ...], list[float]] = defaultdict(list)
    found: list[ViewedRun] = []
    for run in runs:
        before = rates[run.suites, run.targets]
        found.append(run if run.partial is not None else replace(run, trend=tuple(before[-_TREND:])))
        if run.state == "finished" and run.partial is None and run.pass_rate is not None:
            before.append(run.pass_rate)
    return found


_SORTS: dict[RunSort, Callable[[ViewedRun], Any]] = {
    "started": _start_key,
    "name": lambda one: (one.name or one.run_id).casefold(),
    "pass_rate": lambda one: one.pass_rate,
    "cost": lambda one: one.cost_usd,
    "duration": lambda one: one.duration_ms,
    "cases": lambda one: one.total,
}


def _matches(query: RunQuery, run: ViewedRun) -> bool:
    texts = (run.run_id, run.name, *run.suites, *run.targets, *run.tags)
    return (
        query.tag in ("", *run.tags)
        and query.suite in ("", *run.suites)
        and query.target in ("", *run.targets)
        and (not query.state or run.state in query.state.split())
        and all(any(term in text.casefold() for text in texts) for term in query.q.casefold().split())
    )


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(set(names), key=lambda name: (name.casefold(), name))


_UNKNOWN = ViewedRun("", "", "unreadable", "", "", (), (), (), 0, None, None, 0, None, None, None, None)


def _unreadable(run_id: str, problem: str) -> ViewedRun:
    return replace(_UNKNOWN, run_id=run_id, problem=without_directories(problem))


def _with_totals(run: ViewedRun, summary: JsonObject) -> ViewedRun:
    """A copy of the run with the numbers of its summary."""
    totals: dict[str, Any] = dict(summary)
    cases = {key: number for key, number in totals["cases"].items() if key in StatusCounts.__struct_fields__}
    return replace(
        run,
        cases=StatusCounts(**cases),
        total=totals["cases"].get("total", sum(cases.values())),
        pass_rate=totals.get("pass_rate"),
        pass_rate_interval=totals.get("pass_rate_interval"),
        cost_usd=total_cost(*(totals.get(f"{whose}cost_usd") for whose in ("", "judge_", "user_"))),
        tags=tuple(totals.get("by_tag") or ()),
        failed_gates=sum(not gate["passed"] for gate in totals.get("gates") or ()),
    )
