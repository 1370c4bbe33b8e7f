"""Progress in a cell of a notebook: one line, updated in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any, Protocol

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
        self,
        display: Callable[[dict[str, str]], Handle | None],
        clock: Callable[[], float] = time.monotonic,
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
