"""One trial with all that its page shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentv.errors import UsageError
from agentv.extensions.view.pages.whole import whole
from agentv.extensions.view.pages.work import shown_work, work_json
from agentv.extensions.view.viewed.cases import NoSuchCaseError
from agentv.extensions.view.viewed.growing import GrowingRun
from agentv.model.run.trial import TrialResult
from agentv.model.values.values import JsonObject
from agentv.reports.run.failures import FailedTrial
from agentv.reports.run.rerun import RerunOptions
from agentv.store.files.directory import RUN, read_document


def whole_trial(run: GrowingRun, trial: str) -> dict[str, Any]:
    """The trial with the name that lists have for it.

    Raises:
        NoSuchCaseError: the run has none.
        StoreError: its row cannot be read.
    """
    result = _result(run, trial)
    work = shown_work(run.path, result)
    shown = {**whole(result, run.root), **(work_json(work) if work is not None else {})}
    return {**shown, "rerun": _rerun(run, result)}


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


def _rerun(run: GrowingRun, result: TrialResult) -> str | None:
    """The command that runs the case again; None: none can."""
    return _options(run, read_document(run.path / RUN)).rerun_trial(_named(result))


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
