"""A run is pushed while it goes on: a thread reads its files as they grow. The run never waits for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from agentv.errors import AgentvError, StoreError
from agentv.extensions.team.push.batch_times import NextBatch, Waits
from agentv.extensions.team.push.pushed import LivePushed
from agentv.extensions.team.push.remote import Remote
from agentv.model.values.response import Failure
from agentv.store.files.directory import INDEX, RUN, read_document
from agentv.user_code.functions.guard import attempt

if TYPE_CHECKING:
    from agentv.extensions.team.push.pushing import RunPush

_REQUEST_S = 20.0
"""Seconds to wait for one answer of the server."""

_GOES_ON_S = 45.0
"""Seconds without rows after which a message says that the run is in progress; after 120 the server calls it ended."""

_ARTIFACTS_SHARE = 20
"""Artifacts are looked for so rarely that this takes no more than one part of so many of the time."""


WAITS = Waits()


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
        problem: Callable[[str], None],
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
        Thread(target=self._work, name="agentv-push", daemon=True).start()

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
        return LivePushed(path, page, rows, problem, _rows_behind(path, 0 if push is None else push.size))

    def _work(self) -> None:
        try:
            failure = attempt(self._pushes, None, "internal-error", "the push")
            if isinstance(failure, Failure):
                self._fail(failure.message)
        finally:
            self._done.set()

    def _pushes(self, _: None) -> None:
        with _without_its_command("httpx"):
            from agentv.extensions.team.push.connection import Connection  # the client of HTTP takes a moment to load

        options = {"attempts": 1, "timeout_s": _REQUEST_S, **self._options}
        with Connection(self._remote, **options) as connection:
            self._follow(connection)
            self._run_ended.wait()
            self._end(connection)

    def _follow(self, connection: Any) -> None:
        """Push what is new until the run ends, or trying again is of no use."""
        began = time.monotonic()
        retry = self._waits.retry
        rhythm = _Rhythm()
        while not self._run_ended.is_set():
            size = self._size()
            try:
                self._step(connection, rhythm)
            except AgentvError as error:
                passing = getattr(error, "passing", False)
                self._fail(
                    str(error), "trying again while the run goes on" if passing else "the run goes on without it"
                )
                if not passing:
                    return
                self._run_ended.wait(retry)
                retry = min(2 * retry, self._waits.longest_retry)
                continue
            self._failed, retry = None, self._waits.retry
            self._wait_for_rows(size, time.monotonic() - began)

    def _wait_for_rows(self, size: int, age: float) -> None:
        """Wait until the next batch is due; `size`: of the index before the last one."""
        batch = NextBatch(self._waits, size, time.monotonic(), age)
        while not self._run_ended.is_set() and (wait := batch.wait_s(self._size(), time.monotonic())) > 0:
            self._run_ended.wait(wait)

    def _size(self) -> int:
        """Bytes of the index; 0 before it exists."""
        assert self._path is not None  # noqa: S101  # it was started
        try:
            return (self._path / INDEX).stat().st_size
        except OSError:
            return 0

    def _step(self, connection: Any, rhythm: _Rhythm) -> None:
        assert self._path is not None  # noqa: S101  # it was started
        if self._push is None and not _is_described(self._path):
            return  # the run is about to write what it is
        push = self._opened(connection)
        if push.push_new_rows():
            rhythm.has_news()
        if rhythm.artifacts_are_due:
            with rhythm.measuring():
                push.push_new_artifacts()
        if rhythm.is_silent:
            push.say_that_it_goes_on()
            rhythm.has_news()

    def _end(self, connection: Any) -> None:
        """Push the rest of a run that has ended, until it is complete or nobody waits any more."""
        retry = self._waits.retry / 4
        was_away = self._failed is not None
        while not self._given_up.is_set():
            try:
                self._opened(connection).push()
            except AgentvError as error:
                self._fail(str(error))
                if was_away or not getattr(error, "passing", False):
                    return
                self._given_up.wait(retry)
                retry *= 2
                continue
            self._complete = True
            return

    def _opened(self, connection: Any) -> RunPush:
        """The push of the run, which has its `run.json`."""
        if self._push is None:
            from agentv.extensions.team.push.pushing import RunPush, redactor_of

            assert self._path is not None  # noqa: S101  # it was started
            redactor = redactor_of(self._env, self._remote.token)
            self._push = RunPush(self._path, connection, redactor, self._moved)
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


@contextmanager
def _without_its_command(package: str) -> Iterator[None]:
    """The body imports a package without its command line, for which httpx loads more than for all else."""
    name = f"{package}._main"
    sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # what Python documents for a module not to import
    try:
        yield
    finally:
        if sys.modules[name] is None:
            del sys.modules[name]


class _Rhythm:
    """When artifacts are looked for, and when the server last heard of the run."""

    def __init__(self) -> None:
        self._news = time.monotonic()
        self._next = 0.0

    @property
    def is_silent(self) -> bool:
        """Whether the server heard nothing for a while."""
        return time.monotonic() - self._news > _GOES_ON_S

    @property
    def artifacts_are_due(self) -> bool:
        """Whether to look for artifacts."""
        return time.monotonic() >= self._next

    def has_news(self) -> None:
        """The server heard of the run."""
        self._news = time.monotonic()

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """The body looks for artifacts: the longer it takes, the later is the next time."""
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        self._next = began + max(1.0, _ARTIFACTS_SHARE * took)


def _rows_behind(path: Path, size: int) -> tuple[int, int]:
    """How many rows of a run lie behind so many bytes, and how many there are."""
    missing = number = 0
    with suppress(OSError), (path / INDEX).open("rb") as file:
        for number, line in enumerate(file, 1):  # noqa: B007  # the last one counts
            missing += size <= 0
            size -= len(line)
    return missing, number
