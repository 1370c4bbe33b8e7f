"""An event loop for users' coroutines, on a daemon thread: one that blocks holds up neither ours nor the exit."""

from __future__ import annotations

import asyncio
import os
import selectors
import sys
import sysconfig
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, NoReturn

from agentv.user_code.functions.loop_queue import LoopQueue
from agentv.user_code.functions.own_loop import OwnLoop, OwnSelector


class UserLoop:
    """A loop and its thread, which serves until `close` or the end of the process.

    Attributes:
        held_up: it was found to be blocked; it says itself when it has come free.
    """

    def __init__(self) -> None:
        from agentv.user_code.functions.pool import DaemonPool

        self._selector = _Watched()
        self._loop = _Loop(self._selector)
        self._loop.set_default_executor(DaemonPool())
        if not os.environ.get("AGENTV_DEBUG"):
            # of tasks that were left behind, sockets that were not closed: not what the person at the terminal asked
            self._loop.set_exception_handler(_ignore_exception)
        self._mailbox = LoopQueue(self._loop)
        self._closing: asyncio.Task[None] | None = None
        self._moved = 0.0
        self.held_up = False
        self._thread = Thread(target=self._serve, name="agentv-user-loop", daemon=True)
        self._thread.start()

    def post(self, job: Callable[[], object]) -> None:
        """Run a job on the loop soon. Safe to call from any thread; the job must not raise."""
        self._mailbox.post(job)

    def create_task(self, *given: Any, **options: Any) -> asyncio.Task[Any]:
        """Create a task on the loop; call it from a job."""
        return self._loop.create_task(*given, **options)

    def moved(self) -> None:
        """Note that a call has begun or ended: however long its turn of the loop takes, it is not blocked."""
        self._moved = time.monotonic()

    def blocked_s(self) -> float:
        """Seconds for which the loop has been kept from everything else."""
        since = self._selector.busy_since
        return 0.0 if since is None else max(0.0, time.monotonic() - max(since, self._moved))

    def hold_up(self) -> None:
        """Note that the loop is blocked, until it does its next job."""
        self.held_up = True
        self.post(self._release)

    def position(self) -> str | None:
        """The line of the user's code that the loop is in: `agent.py:12, in answer`."""
        frame = sys._current_frames().get(self._thread.ident or 0)  # noqa: SLF001  # documented; its name warns that it is for cases such as this
        while frame is not None and frame.f_code.co_filename.startswith(_not_theirs()):
            frame = frame.f_back
        if frame is None:
            return None
        return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}, in {frame.f_code.co_name}"

    def close(self, on_closed: Callable[[], object]) -> None:
        """Cancel what still runs, and end once all of it has cleaned up; `on_closed` is called then, on the thread."""
        self.post(lambda: self._begin_closing(on_closed))

    def _serve(self) -> None:
        while self._closing is None or not self._closing.done():
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt):  # of a task that a user started: whoever awaits it is reported
                continue
            except OSError:  # of the selector, which users' code has closed: the process is about to end
                return
        self._loop.close()

    def _release(self) -> None:
        self.held_up = False

    def _begin_closing(self, on_closed: Callable[[], object]) -> None:
        if self._closing is None:
            self._closing = self._loop.create_task(self._wind_up())
            self._closing.add_done_callback(lambda _task: self._loop.end())
            self._closing.add_done_callback(lambda _task: on_closed())

    async def _wind_up(self) -> None:
        while left := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in left:
                if not task.cancelling():  # or it is cleaning up already
                    task.cancel()
            await asyncio.wait(left)
        await self._loop.shutdown_asyncgens()


class _Loop(OwnLoop):
    """A loop that the code that runs on it cannot stop: others' calls run there too."""

    def stop(self) -> NoReturn:
        raise RuntimeError("the event loop belongs to agentv and cannot be stopped")

    def end(self) -> None:
        super().stop()


class _Watched(OwnSelector):
    """A selector that knows since when its loop has not come back to it."""

    busy_since: float | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.busy_since = None
        try:
            return super().select(timeout)
        finally:
            self.busy_since = time.monotonic()


def _ignore_exception(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """What asyncio would write to the terminal."""


@cache
def _not_theirs() -> tuple[str, ...]:
    """How the paths of code begin that no user wrote: Python's, installed packages', agentv's own."""
    homes = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return ("<frozen ", f"{Path(__file__).parents[2]}{os.sep}", *(f"{home}{os.sep}" for home in homes))
