"""One trial with all that its page shows; its case, or all that failed, run again in a process of its own."""

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
from agentv.extensions.view.pages.entries import shown_work
from agentv.extensions.view.pages.whole import whole
from agentv.model.run.trial import TrialResult
from agentv.model.suite.suite import Suite
from agentv.model.values.values import JsonObject, objects_in
from agentv.reports.run.failures import FailedTrial
from agentv.reports.run.rerun import RerunOptions
from agentv.reports.text import one_line
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
    rerun = _options(run, read_document(run.path / RUN)).rerun_trial(FailedTrial.of(result))
    command = None if rerun is None else rerun.command
    return {**whole(result, run.root), **shown_work(run.path, result), "rerun": command}


class RerunCommand(Struct, frozen=True):
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
    """The command that runs a trial's case again; of an empty trial, the failed cases.

    Raises:
        NoSuchCaseError: the run has no such trial.
        UsageError: no command can run it.
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


_ALONE = frozenset({"--last-failed"})
"""Options that select among the cases of the eval files, and have no value."""

_SELECTING = frozenset({"--filter", "--prompt", "--variant"})
"""Options that select by name among what the eval files define."""

_TARGET, _JUDGE = "--target", "--judge"
_HINT = "read the command; if you trust it, run it in a terminal"


def check_rerun(found: RerunCommand, root: str, directory: Path) -> None:
    """Refuse a command of a run's files that neither this user nor the project vouches for.

    Args:
        found: the command.
        root: of the repository that the run lies in, absolute.
        directory: of the project, in which the command runs.

    Raises:
        UsageError: the text says what.
    """
    rest = iter(found.words[2:])
    files: list[str] = []
    named: dict[str, list[str]] = {_TARGET: [], _JUDGE: []}
    other: list[str] = []
    for word in rest:
        if not word.startswith("-"):
            files.append(os.path.join(directory, word))  # noqa: PTH118  # text, as all paths are
        elif word in named:
            named[word].append(next(rest, ""))
        elif word in _SELECTING:
            next(rest, "")
        elif word not in _ALONE:
            value = () if "=" in word or word in _FLAGS else (next(rest, ""),)
            other.append(" ".join((word, *value)))  # only somebody who trusts the run may say that it is harmless
    if is_signed_here(found.record, root):
        recorded = {os.path.realpath(path) for path in _recorded_files(found.record, root, directory)}
        strange = [path for path in files if os.path.realpath(path) not in recorded]
        _refuse(
            [os.path.relpath(path, directory) for path in strange], "a row names an eval file that the run did not run"
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
    """The eval files of a signed `run.json`, and what its command line named."""
    settings = record.get("settings")
    paths = settings.get("paths") if isinstance(settings, dict) else None
    for path in paths if isinstance(paths, list) else ():
        yield os.path.join(directory, str(path))  # noqa: PTH118  # text, as all paths are
    for suite in objects_in(record.get("suites")):
        if suite.get("path"):
            yield os.path.join(root, str(suite["path"]))  # noqa: PTH118  # as above


def _own_files(directory: Path) -> Iterator[str]:
    """The real paths of the project's eval files, without files that came with a run, such as artifacts."""
    home = directory.resolve()
    for path in map(os.path.realpath, eval_files_in(directory, os.environ)):
        above = [one for one in Path(path).parents if one.is_relative_to(home)]
        if above and not any((one / RUN).exists() for one in above):
            yield path


def _undefined(wanted: Sequence[str], files: Sequence[str], directory: Path) -> Sequence[str]:
    """The names of targets and judges that neither the project nor each eval file of the command defines."""
    env = {name: value for name, value in os.environ.items() if name not in _CHOSEN_BY}
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


_CHOSEN_BY = frozenset({"AGENTV_TARGET", "AGENTV_JUDGE"})


def _names(suites: Iterable[Suite]) -> set[str]:
    """The targets and judges of an eval file."""
    found: set[str] = set()
    for suite in suites:
        found.update(target.name for target in suite.targets)
        found.update(judge.name for judge in (suite.judge, suite.default_judge) if judge is not None)
        found.update(suite.judges)
    return found
