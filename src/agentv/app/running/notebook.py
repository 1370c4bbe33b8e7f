"""A run that a notebook starts: on a thread with an event loop of its own, with a line of progress in its cell."""

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

EVERY_S = 0.2
"""Seconds between two updates of the line."""


class Handle(Protocol):
    """An output of a cell that can be replaced."""

    def update(self, data: dict[str, str], *, raw: bool) -> object:
        """Show this in its place."""
        ...


class CellProgress:
    """The line of one run.

    Args:
        display: shows an output, and returns what replaces it.
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
        """Show the line, unless it was shown a moment ago or says nothing new."""
        if not self._view.planned:
            return
        line = progress_line(self._view)
        if line == self._drawn or not (now or self._clock() >= self._last + EVERY_S):
            return
        self._drawn, self._last = line, self._clock()
        data = {"text/plain": line, "text/html": f"<pre>{escape(line)}</pre>"}
        if self._handle is None:
            self._handle = self._display(data)
        else:
            self._handle.update(data, raw=True)


def cell_progress() -> CellProgress | None:
    """The progress of a run that a cell starts; None outside of notebooks. IPython is not imported for it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    return CellProgress(_shown)


def _shown(data: dict[str, str]) -> Any:
    from IPython.display import display

    return display(data, raw=True, display_id=True)


T = TypeVar("T")

SHOWN_S = 0.2
"""Seconds between two calls of what shows the progress."""


def run_in_thread(
    main: Callable[[], Coroutine[Any, Any, T]], stops: StopRequests, shown: Callable[[], object] | None = None
) -> T:
    """The result of a coroutine, run on a thread of its own with the context variables of the caller.

    Ctrl-C, and the interrupt of a notebook's kernel, stop the run: running trials get ten seconds, a second one gives
    them up. The coroutine ends in good order before KeyboardInterrupt is raised.

    Args:
        main: makes the coroutine.
        stops: of the run.
        shown: called on this thread now and then while the run goes on.

    Raises:
        BaseException: what the coroutine raised.
    """
    work = Future[T]()

    def run() -> None:
        try:
            work.set_result(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001  # nothing is swallowed: it is raised on the thread that waits
            work.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), name="agentv", daemon=True).start()
    first: KeyboardInterrupt | None = None
    while True:
        try:
            while wait([work], SHOWN_S if shown is not None else None).not_done:
                if shown is not None:
                    shown()
        except KeyboardInterrupt as interrupt:
            first = first or interrupt
            stops.request()
        else:
            break
    if first is not None:
        raise first
    return work.result()


def is_loop_running() -> bool:
    """Whether this thread runs an event loop, so that another one cannot be run on it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
