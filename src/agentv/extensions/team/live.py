"""A run is pushed while it goes on: a thread reads its files as they grow. The run never waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentv.errors import AgentvError, StoreError
from agentv.extensions.team.remote import Remote
from agentv.model.values.response import Failure
from agentv.store.files.directory import INDEX, RUN, read_document
from agentv.user_code.guard import attempt

if TYPE_CHECKING:
    from agentv.extensions.team.pushing import RunPush


_REQUEST_S = 20.0
"""Seconds to wait for one answer of the server."""

_GOES_ON_S = 45.0
"""Seconds without rows after which a message says that the run is in progress; after 120 the server calls it ended."""

_ARTIFACTS_SHARE = 20
"""Artifacts are looked for so rarely that this takes no more than one part of so many of the time."""


_BATCH_SHARE = 300
"""Between two batches of rows lies at least one part of so many of the time that the run took so far."""


class Waits(Struct, frozen=True):
    """How long a live push waits, in seconds.

    Attributes:
        first, longest: between two batches; they become rarer in a long run, so that they stay few.
        retry, longest_retry: until the server is tried again; each time twice as long.
        idle, end: after the run, for the last rows: without progress, and altogether.
        away: after the run, if the server was away before.
    """

    first: float = 0.25
    longest: float = 2.0
    retry: float = 1.0
    longest_retry: float = 15.0
    idle: float = 5.0
    end: float = 30.0
    away: float = 1.5


WAITS = Waits()


class LivePushed(Struct, frozen=True):
    """What was pushed of a run while it went on.

    Attributes:
        path: its directory.
        page: address of the page that shows it.
        rows: lines that were sent.
        problem: why the server does not have all of it; None: it has.
        missing: how many rows the server lacks, and how many there are.
    """

    path: Path
    page: str
    rows: int
    problem: str | None = None
    missing: tuple[int, int] = (0, 0)


class LivePush:
    """The push of one run while it goes on. Nothing that goes wrong in it is raised.

    Args:
        remote: the server.
        env: the environment, whose secrets are not sent.
        problem: called with why rows cannot be pushed now, once for each reason, on another thread.
        waits: how long to wait.
        options: of the connection.
    """

    def __init__(
        self,
        remote: Remote,
        env: Mapping[str, str],
        problem: Callable[[str], object],
        waits: Waits = WAITS,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._remote = remote
        self._env = env
        self._problem = problem
        self._waits = waits
        self._options = options or {}
        self._path: Path | None = None
        self._push: RunPush | None = None
        self._failed: str | None = None
        self._told: set[str] = set()
        self._steps = 0
        self._run_ended = Event()
        self._given_up = Event()
        self._done = Event()
        self._complete = False

    def start(self, path: Path) -> None:
        """Begin to push the run in a directory, which has been opened."""
        self._path = path
        Thread(target=self._work, args=(path,), name="agentv-push", daemon=True).start()

    def finish(self, waiting: Callable[[], object] = lambda: None) -> LivePushed | None:
        """Wait for the last rows, for a bounded time; what was pushed. None: the run has not begun.

        Ctrl-C ends the waiting.

        Args:
            waiting: called once if it takes a moment.
        """
        if self._path is None:
            return None
        with suppress(KeyboardInterrupt):
            self._wait(waiting)
        self._given_up.set()
        return self._pushed(self._path)

    def _wait(self, waiting: Callable[[], object]) -> None:
        began = moved = time.monotonic()
        idle = self._waits.idle if self._failed is None else self._waits.away
        steps, announced = self._steps, False
        self._run_ended.set()
        while not self._done.wait(0.05):
            now = time.monotonic()
            if self._steps != steps:
                steps, moved = self._steps, now
            if now - moved > idle or now - began > self._waits.end:
                return
            if not announced and now - began > 1:
                announced = True
                waiting()

    def _pushed(self, path: Path) -> LivePushed:
        push = self._push
        run_id, rows = (path.name, 0) if push is None else (push.run_id, push.rows)
        page = self._remote.page_of(run_id)
        if self._complete:
            return LivePushed(path, page, rows)
        problem = self._failed or f"{self._remote.address} did not take them in time"
        size = 0 if push is None else push.size
        missing = number = 0
        with suppress(OSError), (path / INDEX).open("rb") as file:
            for number, line in enumerate(file, 1):  # noqa: B007  # the last one counts
                missing += size <= 0
                size -= len(line)
        return LivePushed(path, page, rows, problem, (missing, number))

    def _work(self, path: Path) -> None:
        try:
            failure = attempt(self._pushes, path, "internal-error", "the push")
            if isinstance(failure, Failure):
                self._fail(failure.message)
        finally:
            self._done.set()

    def _pushes(self, path: Path) -> None:
        from agentv.extensions.team.connection import Connection  # the client of HTTP takes a moment to load

        options = {"attempts": 1, "timeout_s": _REQUEST_S, **self._options}
        with Connection(self._remote, **options) as connection:
            self._follow(connection, path)
            self._run_ended.wait()
            self._end(connection, path)

    def _follow(self, connection: Any, path: Path) -> None:
        """Push what is new until the run ends, or trying again is of no use."""
        began = news = time.monotonic()
        artifacts_at, retry = 0.0, self._waits.retry
        while not self._run_ended.is_set():
            now = time.monotonic()
            try:
                if self._push is not None or _is_described(path):  # else the run is about to write what it is
                    push = self._opened(connection, path)
                    if push.push_new_rows():
                        news = now
                    if now >= artifacts_at:
                        looked = time.monotonic()
                        push.push_new_artifacts()
                        artifacts_at = looked + max(1.0, _ARTIFACTS_SHARE * (time.monotonic() - looked))
                    if now - news > _GOES_ON_S:
                        push.say_that_it_goes_on()
                        news = now
            except AgentvError as error:
                if not getattr(error, "passing", False):
                    self._fail(str(error))
                    return
                self._fail(str(error), "trying again while the run goes on")
                self._run_ended.wait(retry)
                retry = min(2 * retry, self._waits.longest_retry)
                continue
            self._failed, retry = None, self._waits.retry
            self._run_ended.wait(min(self._waits.longest, max(self._waits.first, (now - began) / _BATCH_SHARE)))

    def _end(self, connection: Any, path: Path) -> None:
        """Push the rest of a run that has ended, until it is complete or nobody waits any more."""
        retry = self._waits.retry / 4
        was_away = self._failed is not None
        while not self._given_up.is_set():
            try:
                self._opened(connection, path).push()
            except AgentvError as error:
                self._fail(str(error))
                if was_away or not getattr(error, "passing", False):
                    return
                self._given_up.wait(retry)
                retry *= 2
                continue
            self._complete = True
            return

    def _opened(self, connection: Any, path: Path) -> RunPush:
        """The push of the run, which has its `run.json`."""
        if self._push is None:
            from agentv.extensions.team.pushing import RunPush, redactor_of

            redactor = redactor_of(self._env, self._remote.token)
            self._push = RunPush(path, connection, redactor, self._moved)
        return self._push

    def _moved(self, *_: int) -> None:
        self._steps += 1

    def _fail(self, reason: str, then: str = "the run goes on without it") -> None:
        if reason != self._failed:
            self._failed = reason
            if not self._run_ended.is_set() and reason not in self._told:
                self._told.add(reason)
                self._problem(f"cannot push now: {reason}; {then}")


def _is_described(path: Path) -> bool:
    """Whether `run.json` says what is run; a directory that was just opened has one that only names the run."""
    try:
        return "started" in read_document(path / RUN)
    except StoreError:
        return False
