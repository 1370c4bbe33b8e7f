"""Runs started in a notebook: on a separate thread with its own event loop, with a progress line in the cell."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextvars import copy_context
from html import escape
from typing import Any, Protocol, TypeVar

from agentv.app.running.drive import StopRequests
from agentv.model.run.events import Event, RunStarted, TrialFinished, TrialKept
from agentv.reports.run.plain import progress_line
from agentv.reports.run.view import RunView

UPDATE_INTERVAL_S = 0.2
"""Seconds between two updates of the line."""


class Handle(Protocol):
    """A cell output that can be updated."""

    def update(self, data: dict[str, str], *, raw: bool) -> object:
        """Replace the output."""
        ...


class CellProgress:
    """The progress line of one run.

    Args:
        display: shows an output and returns its handle.
        clock: seconds from some fixed point.
    """

    def __init__(
        self, display: Callable[[dict[str, str]], Handle | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._display = display
        self._view = RunView(0)
        self._clock = clock
        self._handle: Handle | None = None
        self._drawn = ""
        self._last = float("-inf")

    def add(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, TrialFinished):
            self._view.add(event.result)
        elif isinstance(event, RunStarted):
            self._view.planned = event.trials + self._view.earlier
        elif isinstance(event, TrialKept):
            self._view.add_earlier(event.result)

    def draw(self, *, now: bool = False) -> None:
        """Show the line if it changed and the last update was `UPDATE_INTERVAL_S` seconds ago, or if `now` is set."""
        if not self._view.planned:
            return
        line = progress_line(self._view)
        if line == self._drawn or not (now or self._clock() >= self._last + UPDATE_INTERVAL_S):
            return
        self._drawn, self._last = line, self._clock()
        data = {"text/plain": line, "text/html": f"<pre>{escape(line)}</pre>"}
        if self._handle is None:
            self._handle = self._display(data)
        else:
            self._handle.update(data, raw=True)


def cell_progress() -> CellProgress | None:
    """Return a progress line for the current cell, or None outside of notebooks. Does not import IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    return CellProgress(_display_output)


def _display_output(data: dict[str, str]) -> Any:
    from IPython.display import display

    return display(data, raw=True, display_id=True)


T = TypeVar("T")

PROGRESS_INTERVAL_S = 0.2
"""Seconds between two calls of the function that shows progress."""


def run_in_thread(
    main: Callable[[], Coroutine[Any, Any, T]], stops: StopRequests, show_progress: Callable[[], object] | None = None
) -> T:
    """Run a coroutine on a new thread with the caller's context variables, and return its result.

    Ctrl-C, or an interrupt of the notebook's kernel, stops the run: running trials get ten seconds to finish, and a
    second interrupt aborts them. KeyboardInterrupt is raised after the coroutine has shut down cleanly.

    Args:
        main: makes the coroutine.
        stops: of the run.
        show_progress: called on this thread every `PROGRESS_INTERVAL_S` seconds during the run.

    Raises:
        BaseException: any exception of the coroutine.
    """
    work = Future[T]()

    def run() -> None:
        try:
            work.set_result(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001  # raised again on the waiting thread
            work.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), name="agentv", daemon=True).start()
    first: KeyboardInterrupt | None = None
    while True:
        try:
            while wait([work], PROGRESS_INTERVAL_S if show_progress is not None else None).not_done:
                if show_progress is not None:
                    show_progress()
        except KeyboardInterrupt as interrupt:
            first = first or interrupt
            stops.request()
        else:
            break
    if first is not None:
        raise first
    return work.result()


def is_loop_running() -> bool:
    """Whether an event loop is running on this thread, so that `asyncio.run` would fail."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
