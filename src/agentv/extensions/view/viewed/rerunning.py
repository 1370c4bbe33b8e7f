"""Runs a case, or all that failed, again in a process of its own: one at a time, without a shell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Literal

from msgspec import Struct

from agentv.app.results.project import Project
from agentv.errors import UsageError

SHOWN_BYTES = 4000
"""End of the output that is shown."""

GRACE_S = 5.0
"""Seconds that a cancelled run has to write what it did."""


class Rerun(Struct, frozen=True):
    """A case that runs again, or the last one that did.

    Attributes:
        state: `none`: no case was run again yet.
        trial: of the run `of`, whose case it is; empty: all cases run that failed.
        command: as the page shows it.
        status: exit status; null: it has not ended.
        output: the end of what it printed.
        run_id: the new run; empty: it is not there yet.
    """

    state: Literal["none", "running", "ended", "cancelled"] = "none"
    of: str = ""
    trial: str = ""
    command: str = ""
    status: int | None = None
    output: str = ""
    run_id: str = ""


class CaseRunner:
    """Runs cases of a project again."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._printed: IO[bytes] | None = None
        self._begun = Rerun()
        self._before: frozenset[str] = frozenset()
        self._cancelled = False

    def start(self, words: Sequence[str], begun: Rerun) -> Rerun:
        """Start a command of agentv.

        Args:
            words: of the command, with the program's name first.
            begun: what is said of it.

        Raises:
            UsageError: another one runs, or this one cannot be started.
        """
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                raise UsageError("a case is running again already; wait for it or cancel it")
            self._forget()
            self._begun, self._cancelled = begun, False
            self._before = frozenset(self._project.runs())
            self._printed = TemporaryFile()  # noqa: SIM115  # closed when the next one starts
            # -P: as the command `agentv`, which imports nothing from the working directory
            command = [sys.executable, "-P", "-m", "agentv", *words[1:]]
            try:
                self._process = subprocess.Popen(  # a list of words, no shell
                    command,
                    cwd=self._project.root,
                    stdin=subprocess.DEVNULL,
                    stdout=self._printed,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise UsageError(f"the command cannot be started: {error}") from error
            return self._now()

    def status(self) -> Rerun:
        """How far it is."""
        with self._lock:
            return self._now()

    def cancel(self) -> Rerun:
        """End it as Ctrl-C does; what ran until then is kept."""
        with self._lock:
            process = self._process
            if process is None or process.poll() is not None:
                return self._now()
            self._cancelled = True
            process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        return self.status()

    def close(self) -> None:
        """End what runs; its processes with it, if they do not end by themselves."""
        self.cancel()
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._forget()

    def _now(self) -> Rerun:
        process, begun = self._process, self._begun
        if process is None:
            return begun
        status = process.poll()
        state: Literal["running", "ended", "cancelled"] = "running"
        if status is not None:
            state = "cancelled" if self._cancelled else "ended"
        new = [run_id for run_id in self._project.runs() if run_id not in self._before]
        return Rerun(state, begun.of, begun.trial, begun.command, status, self._output(), new[-1] if new else "")

    def _output(self) -> str:
        if self._printed is None:
            return ""
        descriptor = self._printed.fileno()  # read without moving where the process writes
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, SHOWN_BYTES, max(0, size - SHOWN_BYTES)).decode(errors="replace")

    def _forget(self) -> None:
        if self._printed is not None:
            self._printed.close()
        self._printed = self._process = None
