"""Runs that are open, with their indexes."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event, Lock, Thread

from agentv.app.results.project import Project, check_files
from agentv.authoring.source.files import repository_root
from agentv.errors import AgentvError
from agentv.extensions.view.viewed.growing import GrowingRun
from agentv.reports.text.escaping import safe

_OPEN = 8
"""Runs that are held open; the one that was asked for longest ago is closed for another."""

_PAUSE_S = 0.02
"""Between two batches of rows that are read in the background, so that questions come first."""


class OpenRuns:
    """The runs of a project as they are asked for. A thread reads the rows of those that are not read yet.

    Attributes:
        tell: called with what whoever started the server should know.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.tell: Callable[[str], None] = lambda _: None
        self._told = False
        self._directory = tempfile.TemporaryDirectory(prefix="agentv-view-")
        self._runs: OrderedDict[Path, GrowingRun] = OrderedDict()
        self._numbers = count()
        self._lock = Lock()
        self._ended = Event()
        self._behind: Thread | None = None

    def run(self, run_id: str) -> GrowingRun:
        """The run with an id, read as far as a moment allows.

        Raises:
            NoSuchRunError: no run has this id.
            StoreError: its files cannot be read.
        """
        return self.opened(self.project.run(run_id))

    def opened(self, path: Path) -> GrowingRun:
        """As `run`, by its directory."""
        check_files(path)
        with self._lock:
            found = self._runs.get(path)
            closed = []
            if found is None:
                closed = [self._runs.pop(one) for one in list(self._runs) if not one.is_dir()]  # deleted by others
                temporary = Path(self._directory.name, f"{next(self._numbers)}.sqlite")
                found = self._runs[path] = GrowingRun(path, repository_root(str(path.parent)), temporary)
            self._runs.move_to_end(path)
            closed += [self._runs.popitem(last=False)[1] for _ in range(len(self._runs) - _OPEN)]
        for one in closed:
            one.close()
        if found.catch_up().indexed < 1 or found.to_keep:
            self._read_in_background()
        return found

    def is_open(self, path: Path) -> bool:
        """Whether somebody asked for a run lately."""
        with self._lock:
            return path in self._runs

    def forget(self, path: Path) -> None:
        """Close a run that is gone."""
        with self._lock:
            found = self._runs.pop(path, None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """Close all of them."""
        self._ended.set()
        if self._behind is not None:
            self._behind.join(timeout=1)
        for path in list(self._runs):
            self.forget(path)
        with suppress(OSError):
            self._directory.cleanup()

    def _tell_apart(self, run: Path) -> None:
        if not self._told:
            self._told = True
            self.tell(
                f"note: no index can be written in {safe(str(run))}: it is kept in {self._directory.name} until the"
                " server stops, and made again at the next start"
            )

    def _read_in_background(self) -> None:
        with self._lock:
            if self._behind is None or not self._behind.is_alive():
                self._behind = Thread(target=self._read_all, name="agentv-view-rows", daemon=True)
                self._behind.start()

    def _read_all(self) -> None:
        broken: set[GrowingRun] = set()
        while not self._ended.is_set():
            with self._lock:
                runs = list(self._runs.values())
            behind = [run for run in runs if run not in broken and run.changed()]
            to_keep = [run for run in runs if run not in broken and run.to_keep]
            if not behind and not to_keep:
                return
            for run in behind or to_keep[:1]:
                try:
                    run.catch_up(0)
                    if not behind and not run.keep():
                        self._tell_apart(run.path)
                except (AgentvError, OSError, sqlite3.Error):  # the next caller gets the error
                    broken.add(run)
            time.sleep(_PAUSE_S)
