"""One trial in full, and reruns of its case, or of all failed cases, in a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any, Literal

from msgspec import Struct

from agentv.app.planning.default_paths import eval_files_in
from agentv.app.planning.preparation import prepare
from agentv.app.registries import registries
from agentv.app.results.project import Project
from agentv.app.running.run_record import is_signed_here
from agentv.app.settings import EvalSettings
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.loading.inventory import inventory
from agentv.errors import AgentvError, UsageError
from agentv.extensions.view.cases import NoSuchCaseError
from agentv.extensions.view.growing import GrowingRun
from agentv.extensions.view.pages.entries import trace_and_diff
from agentv.extensions.view.pages.whole import trial_data
from agentv.model.run.trial import TrialResult
from agentv.model.suite.suite import Suite
from agentv.model.values.values import JsonObject, objects_in
from agentv.reports.run.failures import FailedTrial
from agentv.reports.run.rerun import RerunOptions
from agentv.reports.text import one_line
from agentv.store.files.directory import RUN, read_document

SHOWN_BYTES = 4000
"""Maximum size of the shown end of the output."""

GRACE_S = 5.0
"""Seconds that a cancelled run has to save its results."""


def whole_trial(run: GrowingRun, trial: str) -> dict[str, Any]:
    """The data of a trial, by its `trial` value in lists.

    Raises:
        NoSuchCaseError: the run has no such trial.
        StoreError: its row cannot be read.
    """
    result = _result(run, trial)
    rerun = _options(run, read_document(run.path / RUN)).rerun_trial(FailedTrial.of(result))
    command = None if rerun is None else rerun.command
    return {**trial_data(result, run.root), **trace_and_diff(run.path, result), "rerun": command}


class RerunCommand(Struct, frozen=True):
    """A command that runs cases again.

    Attributes:
        words: arguments to start it without a shell.
        shown: text that pages show.
        record: the `run.json` that the command was made from. The check uses it too, as the file may change meanwhile.
    """

    words: list[str]
    shown: str
    record: JsonObject


def rerun_command(run: GrowingRun, trial: str) -> RerunCommand:
    """The command that runs a trial's case again, or all failed cases if `trial` is "".

    Raises:
        NoSuchCaseError: the run has no such trial.
        UsageError: the cases cannot be run again.
    """
    result, record = _result(run, trial) if trial else None, read_document(run.path / RUN)
    options = _options(run, record)
    found = options.rerun_all() if result is None else options.rerun_trial(FailedTrial.of(result))
    if found is None:
        no_file = "the suite of this case has no file, so it cannot be run again"
        elsewhere = "this run cannot be run again: its suites have no files, or it is not in .agentv/results"
        raise UsageError(no_file if trial else elsewhere)
    return RerunCommand(found.words, found.command, record)


def _options(run: GrowingRun, record: JsonObject) -> RerunOptions:
    return RerunOptions.of(record, here=run.root, root=run.root, directory=str(run.path))


def _result(run: GrowingRun, trial: str) -> TrialResult:
    number = int(trial) if trial.isascii() and trial.isdigit() and len(trial) < 18 else None
    result = None if number is None else run.result(number)
    if result is None:
        raise NoSuchCaseError("this run has no such trial")
    return result


class Rerun(Struct, frozen=True):
    """The current or last rerun.

    Attributes:
        state: state of the rerun; `none` before the first one.
        of: id of the run whose cases are run again.
        trial: the trial whose case is run again; empty for all failed cases.
        command: the command, as text.
        status: exit status; null until it has ended.
        output: the end of its output.
        run_id: id of the new run; empty until it exists.
    """

    state: Literal["none", "running", "ended", "cancelled"] = "none"
    of: str = ""
    trial: str = ""
    command: str = ""
    status: int | None = None
    output: str = ""
    run_id: str = ""


class CaseRunner:
    """Runs one rerun of a project's cases at a time."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._printed: IO[bytes] | None = None
        self._started = Rerun()
        self._before: frozenset[str] = frozenset()
        self._cancelled = False

    def start(self, words: Sequence[str], begun: Rerun) -> Rerun:
        """Start an agentv command.

        Args:
            words: arguments of the command, starting with the program's name.
            begun: the status to report while it runs.

        Raises:
            UsageError: another rerun is in progress, or the command cannot be started.
        """
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                raise UsageError("a case is running again already; wait for it or cancel it")
            self._release()
            self._started, self._cancelled = begun, False
            self._before = frozenset(self._project.runs())
            self._printed = TemporaryFile()  # noqa: SIM115  # closed when the next one starts
            # -P: like the command `agentv`, do not import modules from the working directory
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
            return self._current()

    def status(self) -> Rerun:
        """The status of the current or last rerun."""
        with self._lock:
            return self._current()

    def cancel(self) -> Rerun:
        """Interrupt the rerun as Ctrl-C does, so that its results so far are saved."""
        with self._lock:
            process = self._process
            if process is None or process.poll() is not None:
                return self._current()
            self._cancelled = True
            process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        return self.status()

    def close(self) -> None:
        """Cancel the rerun, and kill its process group if it does not end in time."""
        self.cancel()
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._release()

    def _current(self) -> Rerun:
        process, begun = self._process, self._started
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
        descriptor = self._printed.fileno()  # pread leaves the process's write position unchanged
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, SHOWN_BYTES, max(0, size - SHOWN_BYTES)).decode(errors="replace")

    def _release(self) -> None:
        if self._printed is not None:
            self._printed.close()
        self._printed = self._process = None


_SELECTING_FLAGS = frozenset({"--last-failed"})
"""Options without a value that select cases of the eval files."""

_SELECTING = frozenset({"--filter", "--prompt", "--variant"})
"""Options with a value that select by name among definitions of the eval files."""

_TARGET, _JUDGE = "--target", "--judge"
_HINT = "read the command; if you trust it, run it in a terminal"


def check_rerun(found: RerunCommand, root: str, directory: Path) -> None:
    """Refuse a command from a run's files that is not backed by this user's signature or the project's own files.

    Args:
        found: the command.
        root: absolute path of the repository that contains the run.
        directory: directory of the project, in which the command runs.

    Raises:
        UsageError: the command is refused; the message says why.
    """
    rest = iter(found.words[2:])
    files: list[str] = []
    named: dict[str, list[str]] = {_TARGET: [], _JUDGE: []}
    other: list[str] = []
    for word in rest:
        if not word.startswith("-"):
            files.append(os.path.join(directory, word))  # noqa: PTH118  # paths are strings here
        elif word in named:
            named[word].append(next(rest, ""))
        elif word in _SELECTING:
            next(rest, "")
        elif word not in _SELECTING_FLAGS:
            value = () if "=" in word or word in _FLAGS else (next(rest, ""),)
            other.append(" ".join((word, *value)))  # only a person can judge whether it is safe
    if is_signed_here(found.record, root):
        recorded = {os.path.realpath(path) for path in _recorded_files(found.record, root, directory)}
        unrecorded = [path for path in files if os.path.realpath(path) not in recorded]
        _refuse(
            [os.path.relpath(path, directory) for path in unrecorded],
            "a row names an eval file that the run did not run",
        )
        return
    what = "the run was not started by you in this project on this machine, and the project does not define"
    _refuse(other, what)
    own = set(_own_files(directory))
    _refuse([os.path.relpath(path, directory) for path in files if os.path.realpath(path) not in own], what)
    _refuse(_undefined([*named[_TARGET], *named[_JUDGE]], files, directory), what)


def _refuse(found: Sequence[str], what: str) -> None:
    if found:
        raise UsageError(f"not run from this page: {what}: {one_line(', '.join(found))[:300]}", _HINT)


_FLAGS = frozenset({"--allow-outside", "--trust-data", "--allow-unchecked"})


def _recorded_files(record: JsonObject, root: str, directory: Path) -> Iterator[str]:
    """The eval files of a signed `run.json`, and the paths named on its command line."""
    settings = record.get("settings")
    paths = settings.get("paths") if isinstance(settings, dict) else None
    for path in paths if isinstance(paths, list) else ():
        yield os.path.join(directory, str(path))  # noqa: PTH118  # paths are strings here
    for suite in objects_in(record.get("suites")):
        if suite.get("path"):
            yield os.path.join(root, str(suite["path"]))  # noqa: PTH118


def _own_files(directory: Path) -> Iterator[str]:
    """The resolved paths of the project's eval files, except files within runs, such as artifacts."""
    home = directory.resolve()
    for path in map(os.path.realpath, eval_files_in(directory, os.environ)):
        above = [one for one in Path(path).parents if one.is_relative_to(home)]
        if above and not any((one / RUN).exists() for one in above):
            yield path


def _undefined(wanted: Sequence[str], files: Sequence[str], directory: Path) -> Sequence[str]:
    """The names that neither the project nor all eval files of the command define as targets or judges."""
    env = {name: value for name, value in os.environ.items() if name not in _TARGET_VARIABLES}
    try:
        unlisted = set(wanted)
        if wanted:
            request = LoadRequest((), process_env=env, for_run=False)
            unlisted -= {entry.name for entry in inventory(str(directory), (), request, registries()).entries}
        if unlisted:
            settings = (EvalSettings(paths=(file,), asks=False, process_env=env) for file in files)
            by_file = [_names(prepare(one).suites) for one in settings]
            unlisted = {name for name in unlisted if not all(name in names for names in by_file)}
    except AgentvError:
        return wanted
    return [name for name in wanted if name in unlisted]


_TARGET_VARIABLES = frozenset({"AGENTV_TARGET", "AGENTV_JUDGE"})


def _names(suites: Iterable[Suite]) -> set[str]:
    """The names of targets and judges of an eval file."""
    found: set[str] = set()
    for suite in suites:
        found.update(target.name for target in suite.targets)
        found.update(judge.name for judge in (suite.judge, suite.default_judge) if judge is not None)
        found.update(suite.judges)
    return found
