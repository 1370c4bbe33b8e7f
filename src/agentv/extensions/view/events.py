"""Server-sent events about a run and about the list of runs."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any, Literal, Self

from msgspec import Struct
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from agentv.errors import AgentvError, StoreError
from agentv.extensions.view.cases import StatusCounts, ViewedCase
from agentv.extensions.view.growing import GrowingRun
from agentv.extensions.view.runs import ViewedRun
from agentv.extensions.view.state import view_of
from agentv.reports.text import without_directories
from agentv.store.files.directory import RUN, is_being_written, read_document
from agentv.web.answers import RefusedError, encoded, error_response, response_to_error
from agentv.web.endpoints import ProjectContext, Stream

LiveState = Literal["running", "ended", "deleted", "unreadable"]

_EVENT_ROWS = 200
"""Maximum number of rows per event."""

_CACHED_EVENTS = 8
"""Number of cached events, for other streams with the same cursor."""


class RowsEvent(Struct, frozen=True):
    """Rows were added.

    Attributes:
        cases: current data of the cases with a new row, with all their trials.
        done, planned: number of trials with a row, and of planned trials; null if unknown.
        counts: the run's cases so far, by status.
        cursor: position after these rows.
    """

    cases: list[ViewedCase]
    done: int
    planned: int | None
    counts: StatusCounts
    cursor: str


class StateEvent(Struct, frozen=True):
    """The state of a run changed.

    Attributes:
        state: the new state. `ended` means finished or interrupted; `/api/runs/{id}` says which.
        problem: why the run is unreadable.
    """

    state: LiveState
    problem: str = ""


class ResetEvent(Struct, frozen=True):
    """The rows were replaced or truncated: the client must reload all of them."""

    cursor: str


POLL_S = 0.05
"""Interval between two checks of a watched run's rows."""

STATE_S = 0.5
"""Interval between two checks of the state of a run, and of the list of runs."""

PING_S = 15
SEND_S = 30.0
"""Seconds after which a client that receives nothing is disconnected."""


MOST_STREAMS = 200
"""Maximum number of concurrent streams of a project, so that they cannot use up all connections."""

CHECK_S = 5.0
"""Seconds between two checks that the viewer of a stream may still read the project."""


class Watch:
    """Polls something while it has watchers, and notifies them of changes. Each watcher enters it as a context manager.

    Attributes:
        watchers: number of watchers.
        changed: event that the next change sets, and then replaces. Get it before reading the current state.
    """

    def __init__(self, look: Callable[[], bool], every_s: float) -> None:
        self._look = look
        self._every_s = every_s
        self.watchers = 0
        self._task: asyncio.Task[None] | None = None
        self.changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.watchers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.watchers -= 1
        if not self.watchers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self) -> None:
        while True:
            with suppress(AgentvError, OSError):
                if await run_in_threadpool(self._look):
                    self.changed.set()
                    self.changed = asyncio.Event()
            await asyncio.sleep(self._every_s)


class RunChanges:
    """Changes of one run, read once for all of its streams.

    Attributes:
        state: last known state of the run.
        lock: held while a stream looks for changes.
    """

    def __init__(self, run: GrowingRun) -> None:
        self.run = run
        self._cache: OrderedDict[tuple[str, str], RowsEvent | ResetEvent | None] = OrderedDict()
        self.state = self._state()
        self.lock = asyncio.Lock()
        self._state_checked = time.monotonic()
        self.watch = Watch(self._look, POLL_S)

    def _look(self) -> bool:
        changed = self._read()
        if time.monotonic() - self._state_checked >= STATE_S:
            state, self._state_checked = self._state(), time.monotonic()
            if state != self.state:
                changed = self._read() or True  # send the last rows before the end
                self.state = state
        return changed

    def _read(self) -> bool:
        """Read appended rows; return whether there were changes."""
        if not self.run.changed():
            return False
        self.run.catch_up(0.1)
        return True

    def _state(self) -> StateEvent:
        if not self.run.path.is_dir():
            return StateEvent("deleted")
        try:
            return StateEvent("running" if is_being_written(self.run.path) else "ended")
        except StoreError as error:
            return StateEvent("unreadable", without_directories(str(error)))

    def cursor(self) -> str:
        """The position after the rows read so far."""
        return self.run.progress().cursor

    def after(self, cursor: str) -> RowsEvent | ResetEvent | None:
        """The next event after a cursor, or None if nothing has changed."""
        key = (cursor, self.cursor())
        if cursor == key[1]:
            return None
        if key not in self._cache:
            self._cache[key] = self._found(*key)
            while len(self._cache) > _CACHED_EVENTS:
                self._cache.popitem(last=False)
        return self._cache[key]

    def _found(self, cursor: str, now: str) -> RowsEvent | ResetEvent | None:
        with self.run.lock:
            found = self.run.changed_since(cursor, _EVENT_ROWS)
            if found is None:
                return ResetEvent(now)
            entries, following = found
            with self.run.index() as index:
                counts, done = StatusCounts.of(index.counts), index.trials
        return RowsEvent([ViewedCase.of(entry) for entry in entries], done, self._planned(), counts, following)

    def _planned(self) -> int | None:
        with suppress(StoreError):
            planned = read_document(self.run.path / RUN).get("planned")
            number = planned.get("trials") if isinstance(planned, dict) else None
            return number if isinstance(number, int) else None
        return None


class _AccessCheck:
    """Checks that the viewer of a stream may still read the project, as they may be signed out meanwhile."""

    def __init__(self, context: ProjectContext, request: Request) -> None:
        self._context = context
        self._request = request
        self._checked = time.monotonic()

    async def wait(self, changed: asyncio.Event) -> bool:
        """Wait for a change or a timeout; return whether the viewer may still read the project."""
        with suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), CHECK_S)
        if time.monotonic() - self._checked < CHECK_S:
            return True
        self._checked = time.monotonic()
        try:
            await run_in_threadpool(self._context.viewer, self._request)
        except RefusedError:
            return False
        except AgentvError:  # unknown while the database is unavailable
            return True
        return True


class Events:
    """The event streams of a server."""

    def __init__(self, context: ProjectContext) -> None:
        self._context = context
        self._runs: dict[str, RunChanges] = {}
        self._listed: dict[str, ViewedRun] = {}
        self._list_watch = Watch(self._read_list, STATE_S)
        self._streams = 0

    async def of_run(self, request: Request) -> Response:
        """The event stream of one run."""
        try:
            run = await run_in_threadpool(view_of(self._context).opened.run, request.path_params["id"])
            key = str(run.path)
            shared = self._runs.get(key)
            if shared is None or not shared.watch.watchers or shared.run is not run:
                shared = self._runs[key] = RunChanges(run)
        except Exception as error:  # noqa: BLE001  # every error becomes a response with a message
            return response_to_error(error)
        start = request.headers.get("last-event-id") or request.query_params.get("after") or shared.cursor()
        return self._response(self._run_events(shared, start, _AccessCheck(self._context, request)))

    async def of_project(self, request: Request) -> Response:
        """The event stream of the list of runs."""
        return self._response(self._list_events(_AccessCheck(self._context, request)))

    def _response(self, events: AsyncGenerator[ServerSentEvent, None]) -> Response:
        if self._streams >= MOST_STREAMS:
            what = f"{MOST_STREAMS} pages watch this project; close some of them"
            return error_response(503, "too-many-streams", what, 5.0)
        counted = self._counted(events)
        return EventSourceResponse(counted, ping=PING_S, send_timeout=SEND_S, headers={"X-Accel-Buffering": "no"})

    async def _counted(self, events: AsyncGenerator[ServerSentEvent, None]) -> AsyncGenerator[ServerSentEvent, None]:
        if self._streams >= MOST_STREAMS:
            return  # many requests came before any was counted; the client's retry gets the refusal
        self._streams += 1
        try:
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self._streams -= 1

    async def _run_events(
        self, shared: RunChanges, cursor: str, access: _AccessCheck
    ) -> AsyncGenerator[ServerSentEvent, None]:
        state: StateEvent | None = None
        async with shared.watch as watch:
            while True:
                changed = watch.changed
                now = shared.state
                async with shared.lock:
                    found = await run_in_threadpool(shared.after, cursor)
                if isinstance(found, RowsEvent):
                    if found.cases:
                        yield _event("rows", found, found.cursor)
                    cursor = found.cursor
                    continue
                if isinstance(found, ResetEvent):
                    yield _event("reset", found, found.cursor)
                    cursor = found.cursor
                    continue
                if now != state:
                    yield _event("state", now, cursor)
                    state = now
                    if state.state == "deleted":
                        return
                if not await access.wait(changed):
                    return

    def _read_list(self) -> bool:
        """Read the list of runs; return whether a run is new, changed or gone."""
        before, self._listed = self._listed, {run.run_id: run for run in view_of(self._context).runs.all()}
        return self._listed != before

    async def _list_events(self, access: _AccessCheck) -> AsyncGenerator[ServerSentEvent, None]:
        if not self._list_watch.watchers:
            await run_in_threadpool(self._read_list)
        known = self._listed
        async with self._list_watch as watch:
            while True:
                changed = watch.changed
                found = self._listed
                for run_id, run in found.items():
                    if known.get(run_id) != run:
                        yield _event("runs", run)
                for run_id in known.keys() - found.keys():
                    yield _event("gone", GoneEvent(run_id))
                known = found
                if not await access.wait(changed):
                    return


class GoneEvent(Struct, frozen=True):
    """A run was deleted."""

    run_id: str


def _event(name: str, data: Any, cursor: str | None = None) -> ServerSentEvent:
    return ServerSentEvent(encoded(data).decode(), event=name, id=cursor)


class RunStreamQuery(Struct, frozen=True):
    """Where the stream begins.

    Attributes:
        after: cursor after which the stream begins; empty to begin now. The header `Last-Event-ID` takes precedence.
    """

    after: str = ""


STREAMS = (
    Stream(
        "/api/runs/{id}/events",
        "What happens in a run from now on.",
        {"rows": RowsEvent, "state": StateEvent, "reset": ResetEvent},
        Events.of_run,
        RunStreamQuery,
    ),
    Stream(
        "/api/events",
        "Runs that appear, change or go.",
        {"runs": ViewedRun, "gone": GoneEvent},
        Events.of_project,
    ),
)
