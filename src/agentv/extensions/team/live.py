"""Pushes a run while it is in progress, from a thread that reads its files as they grow. The run never waits for it."""

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
from agentv.store.files.directory import RUN, read_document
from agentv.user_code.guard import attempt

if TYPE_CHECKING:
    from agentv.extensions.team.pushing import RunPush


_REQUEST_S = 20.0
"""Seconds to wait for a response of the server."""

_HEARTBEAT_S = 45.0
"""Seconds without rows after which a heartbeat is sent; after 120 the server would consider the run ended."""

_ARTIFACTS_SHARE = 20
"""Scanning for artifacts takes at most one part in this many of the time."""


_BATCH_SHARE = 300
"""The wait between batches is at least one part in this many of the run's duration so far."""


FIRST_S = 0.25
LONGEST_S = 2.0
"""Shortest and longest wait between batches of rows, in seconds; it grows in long runs, so that batches stay few."""

RETRY_S = 1.0
LONGEST_RETRY_S = 15.0
"""First and longest wait before a retry, in seconds; it doubles each time."""

END_S = 10.0
UNREACHABLE_END_S = 1.5
"""Seconds to wait for the last rows after the run; `UNREACHABLE_END_S` if the server was unreachable before."""

_WITHOUT = "the run goes on without it"


class LivePushed(Struct, frozen=True):
    """The result of pushing a run while it was in progress.

    Attributes:
        path: directory of the run.
        page: URL of the run's page.
        rows: number of rows sent.
        problem: why the server does not have the whole run, or None if it does.
    """

    path: Path
    page: str
    rows: int
    problem: str | None = None


class LivePush:
    """Pushes one run while it is in progress. Errors are reported, never raised.

    Args:
        remote: the server.
        env: the environment, whose secrets are not sent.
        problem: called on another thread with the reason why rows cannot be pushed now, once for each reason.
        options: options of the connection.
    """

    def __init__(
        self,
        remote: Remote,
        env: Mapping[str, str],
        problem: Callable[[str], object],
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._remote = remote
        self._env = env
        self._problem = problem
        self._options = options or {}
        self._path: Path | None = None
        self._push: RunPush | None = None
        self._failed: str | None = None
        self._last_sent = time.monotonic()
        self._artifacts_at = 0.0
        self._run_ended = Event()
        self._given_up = Event()
        self._done = Event()
        self._complete = self._unreachable = False

    def start(self, path: Path) -> None:
        """Start pushing the run in a directory, which must exist."""
        self._path = path
        Thread(target=self._work, args=(path,), name="agentv-push", daemon=True).start()

    def finish(self, waiting: Callable[[], object] = lambda: None) -> LivePushed | None:
        """Wait a limited time for the last rows, and return the result, or None if the run has not started.

        Ctrl-C ends the wait.

        Args:
            waiting: called once if the wait takes longer than a moment.
        """
        if self._path is None:
            return None
        longest = UNREACHABLE_END_S if self._unreachable else END_S
        self._run_ended.set()
        with suppress(KeyboardInterrupt):
            if not self._done.wait(min(1.0, longest)):
                waiting()
                self._done.wait(longest - 1.0)
        self._given_up.set()
        run_id, rows = (self._path.name, 0) if self._push is None else (self._push.run_id, self._push.rows)
        problem = None if self._complete else self._failed or f"{self._remote.address} did not take them in time"
        return LivePushed(self._path, self._remote.page_of(run_id), rows, problem)

    def _work(self, path: Path) -> None:
        try:
            failure = attempt(self._push_until_done, path, "internal-error", "the push")
            if isinstance(failure, Failure):
                self._fail(failure.message)
        finally:
            self._done.set()

    def _push_until_done(self, path: Path) -> None:
        """Push new data until the run has ended and the server has all of it, or a retry cannot help."""
        from agentv.extensions.team.connection import Connection  # deferred: the HTTP client is slow to import
        from agentv.extensions.team.pushing import RunPush, redactor_of

        began, retry = time.monotonic(), RETRY_S
        options = {"attempts": 1, "timeout_s": _REQUEST_S, **self._options}
        with Connection(self._remote, **options) as connection:
            while not self._given_up.is_set():
                ended, was_unreachable = self._run_ended.is_set(), self._unreachable
                try:
                    if self._push is None and (ended or _has_full_record(path)):
                        self._push = RunPush(path, connection, redactor_of(self._env, self._remote.token))
                    if self._push is not None and not ended:
                        self._push_new(self._push)
                    elif self._push is not None:
                        self._push.push()
                        self._complete = True
                        return
                    self._failed, self._unreachable, retry = None, False, RETRY_S
                    wait: float | None = min(LONGEST_S, max(FIRST_S, (time.monotonic() - began) / _BATCH_SHARE))
                except AgentvError as error:
                    self._unreachable = getattr(error, "temporary", False)
                    self._fail(str(error), "trying again while the run goes on" if self._unreachable else _WITHOUT)
                    if ended and (was_unreachable or not self._unreachable):
                        return
                    # after a permanent error, try once more when the run has ended
                    wait, retry = retry if self._unreachable else None, min(2 * retry, LONGEST_RETRY_S)
                (self._given_up if ended else self._run_ended).wait(wait)

    def _push_new(self, push: RunPush) -> None:
        now, rows = time.monotonic(), push.rows
        push.push_new_rows()
        if push.rows > rows:
            self._last_sent = now
        if now >= self._artifacts_at:
            looked = time.monotonic()
            push.send_artifacts(settled=True)
            self._artifacts_at = looked + max(1.0, _ARTIFACTS_SHARE * (time.monotonic() - looked))
        if now - self._last_sent > _HEARTBEAT_S:
            push.send_heartbeat()
            self._last_sent = now

    def _fail(self, reason: str, then: str = _WITHOUT) -> None:
        if reason != self._failed:
            self._failed = reason
            if not self._run_ended.is_set():
                self._problem(f"cannot push now: {reason}; {then}")


def _has_full_record(path: Path) -> bool:
    """Whether `run.json` is complete; that of a directory just created has only the id of the run."""
    try:
        return "started" in read_document(path / RUN)
    except StoreError:
        return False
