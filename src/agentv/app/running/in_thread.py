"""A run on a thread with an event loop of its own, for callers whose loop is already running, as in a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from threading import Event, Thread
from typing import Any, TypeVar

from agentv.app.running.drive import StopRequests

T = TypeVar("T")

SHOWN_S = 0.2
"""Seconds between two calls of what shows the progress."""


class _Work:
    """What a thread does, and what came of it."""

    def __init__(self, main: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._main = main
        self.ended = Event()
        self.value: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run it to its end."""
        try:
            self.value = asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  # nothing is swallowed: it is raised on the thread that waits
            self.error = error
        finally:
            self.ended.set()


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
    work = _Work(main)
    context = copy_context()
    Thread(target=context.run, args=(work.run,), name="agentv", daemon=True).start()
    interrupt = _wait(work, stops, shown)
    if interrupt is not None:
        raise interrupt
    if work.error is not None:
        raise work.error
    value: T = work.value
    return value


def _wait(work: _Work, stops: StopRequests, shown: Callable[[], object] | None) -> KeyboardInterrupt | None:
    """Wait for the end; the first interrupt that came meanwhile."""
    first: KeyboardInterrupt | None = None
    while True:
        try:
            while not work.ended.wait(SHOWN_S if shown is not None else None):
                if shown is not None:
                    shown()
        except KeyboardInterrupt as interrupt:
            first = first or interrupt
            stops.request()
        else:
            return first


def is_loop_running() -> bool:
    """Whether this thread runs an event loop, so that another one cannot be run on it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
