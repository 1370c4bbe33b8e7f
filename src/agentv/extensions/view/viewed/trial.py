"""One trial with all that its page shows; its case, or all that failed, run again in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any, Literal

from msgspec import Struct

from agentv.app.results.project import Project
from agentv.errors import UsageError
from agentv.extensions.view.pages.whole import whole
from agentv.extensions.view.pages.work import shown_work
from agentv.extensions.view.viewed.cases import NoSuchCaseError
from agentv.extensions.view.viewed.growing import GrowingRun
from agentv.model.run.trial import TrialResult
from agentv.model.values.values import JsonObject
from agentv.reports.run.failures import FailedTrial
from agentv.reports.run.rerun import RerunOptions
from agentv.store.files.directory import RUN, read_document

SHOWN_BYTES = 4000
"""End of the output that is shown."""

GRACE_S = 5.0
"""Seconds that a cancelled run has to write what it did."""


def whole_trial(run: GrowingRun, trial: str) -> dict[str, Any]:
    """The trial with the name that lists have for it.

    Raises:
        NoSuchCaseError: the run has none.
        StoreError: its row cannot be read.
    """
    result = _result(run, trial)
    rerun = _options(run, read_document(run.path / RUN)).rerun_trial(_named(result))
    return {**whole(result, run.root), **shown_work(run.path, result), "rerun": rerun}


@dataclass(frozen=True, slots=True)
class RerunCommand:
    """A command that runs cases again.

    Attributes:
        words: for a process that is started without a shell.
        shown: as pages show it.
        record: the `run.json` that it was made of: whoever checks the one must not read another.
    """

    words: list[str]
    shown: str
    record: JsonObject


def rerun_command(run: GrowingRun, trial: str) -> RerunCommand:
    """The command that runs a trial's case again.

    Raises:
        NoSuchCaseError: the run has no such trial.
        UsageError: no command can run it.
    """
    result, record = _result(run, trial), read_document(run.path / RUN)
    options, failed = _options(run, record), _named(result)
    words, shown = options.rerun_words(failed), options.rerun_trial(failed)
    if words is None or shown is None:
        raise UsageError("the suite of this case has no file, so it cannot be run again")
    return RerunCommand(words, shown, record)


def rerun_failed_command(run: GrowingRun) -> RerunCommand:
    """The command that runs the failed cases again.

    Raises:
        UsageError: no command can run them.
    """
    record = read_document(run.path / RUN)
    options = _options(run, record)
    words, shown = options.rerun_all_words(), options.rerun_all()
    if words is None or shown is None:
        raise UsageError("this run cannot be run again: its suites have no files, or it is not in .agentv/results")
    return RerunCommand(words, shown, record)


def _options(run: GrowingRun, record: JsonObject) -> RerunOptions:
    return RerunOptions.of(record, here=run.root, root=run.root, directory=str(run.path))


def _named(result: TrialResult) -> FailedTrial:
    of, case = result.trial, result.trial.case
    names = (of.suite.name, of.suite.path, case.id, case.prompt_id, of.target.name, of.variant_name)
    return FailedTrial(*names, of.sample, 0)


def _result(run: GrowingRun, trial: str) -> TrialResult:
    number = int(trial) if trial.isascii() and trial.isdigit() and len(trial) < 18 else None
    result = None if number is None else run.result(number)
    if result is None:
        raise NoSuchCaseError("this run has no such trial")
    return result


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
    """Runs cases of a project again: one at a time, without a shell."""

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
