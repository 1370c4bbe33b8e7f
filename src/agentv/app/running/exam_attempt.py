"""After a run: what each exam of a prompt came to, appended to that prompt's log (SPEC section 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.app.running.exam_eligibility import REUSED, asked, why_partial
from agentv.authoring.source.files import is_directory, repository_root, upwards
from agentv.errors import StoreError
from agentv.model.run.trial import Status, Trial
from agentv.model.suite.exam import Exam, ExamRow
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.values.formatting import timestamp

if TYPE_CHECKING:
    from agentv.app.planning.preparation import Prepared
    from agentv.engine.plan import Plan
    from agentv.model.run.row import Row
    from agentv.prompts.watched_log import WatchedLog

Append = Callable[[Exam, ExamRow], tuple[str, ...]]
"""Stores the prompt texts that were evaluated and appends a row to the prompt's log; returns notes for people.

Raises:
    StoreError: the system refuses.
"""

_WORST: Sequence[Status] = ("errored", "skipped", "shown", "failed", "passed")


@dataclass(frozen=True, slots=True)
class ExamAttempt:
    """One exam that a run was.

    Attributes:
        exam_row: the row of the log.
        verdicts: id of a case → what it came to; of a case on several targets the worst.
        notes: what people should know of the log, such as a torn line that was set aside.
        error: why the row could not be appended; None: it was.
        partial: reasons why the attempt is no evidence; empty if it ran the whole exam with the exam's settings.
    """

    suite: Suite
    exam: Exam
    exam_row: ExamRow
    verdicts: Mapping[str, Status]
    notes: tuple[str, ...] = ()
    error: str | None = None
    partial: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What one case came to on one target; `trial` is its first."""

    trial: Trial
    status: Status


def record_attempts(
    prepared: Prepared, rows: Iterable[Row], *, run_id: str, why: Sequence[str]
) -> tuple[ExamAttempt, ...]:
    """The exam attempts of a run, each appended to its log. A log that cannot be written is reported, not raised.

    Args:
        prepared: what ran.
        rows: of the run, in the order of their file; of several rows of one trial the last counts.
        run_id: of the run.
        why: what makes the whole run no evidence, such as that it was interrupted.
    """
    given = list(exam_attempts(prepared, rows, run_id=run_id, now=datetime.now(UTC), why=why))
    return tuple(recorded(one, append) for one in given)


def logs_of(prepared: Prepared) -> tuple[WatchedLog, ...]:
    """The logs of the prompts whose exams are about to run, with their current content."""
    found = dict.fromkeys(suite.exam.directory for suite in prepared.suites if suite.exam is not None)
    if not found:
        return ()
    from agentv.prompts.watched_log import WatchedLog

    return tuple(map(WatchedLog.of, found))


def restored_logs(logs: Iterable[WatchedLog], run_id: str) -> Iterator[str]:
    """Restore logs that the system under test wrote to; yields what was wrong. Appending reports other problems."""
    for log in logs:
        with suppress(StoreError):
            for note in log.restored(run_id, datetime.now(UTC)):
                yield f"{Path(log.directory).name}: {note}"


def recorded(attempt: ExamAttempt, append: Append) -> ExamAttempt:
    """The attempt, appended to its log."""
    notes: tuple[str, ...] = ()
    failure = None
    try:
        notes = append(attempt.exam, attempt.exam_row)
    except StoreError as error:
        failure = str(error)
    return replace(attempt, notes=notes, error=failure)


def append(exam: Exam, exam_row: ExamRow) -> tuple[str, ...]:
    """Keep the texts, then append the row. What an exam found out is worth more than that it can be compared with."""
    from agentv.prompts import appending, texts

    notes: tuple[str, ...] = ()
    try:
        texts.keep(texts_home(exam.directory), exam.texts)
    except StoreError as error:
        notes = (f"{error}; 'agentv prompt diff' cannot show what changed",)
    return (*notes, *appending.append(exam.directory, exam_row))


def texts_home(directory: str) -> Path:
    """The directory whose `.agentv` stores the texts of a prompt: the closest above its directory, else the root."""
    root = repository_root(directory)
    found = (parent for parent in upwards(directory, root) if is_directory(str(Path(parent, ".agentv"))))
    return Path(next(found, root))


def exam_attempts(
    prepared: Prepared, rows: Iterable[Row], *, run_id: str, now: datetime, why: Sequence[str] = ()
) -> Iterator[ExamAttempt]:
    """The result of each exam among the suites, computed from the rows as `record_attempts` gets them; it ended now.

    An exam of which no case was selected was not attempted.
    """
    plan, settings = prepared.plan, prepared.settings
    planned = {id(suite): list(_trials(suite, plan)) for suite in prepared.suites if suite.exam is not None}
    keys = {trial.key for cases in planned.values() for trials in cases for trial in trials}
    by_key = {row.key: row for row in rows if row.key in keys}
    for suite in prepared.suites:
        if suite.exam is None or not planned[id(suite)]:
            continue
        found = [_Verdict(trials[0], _status(trials, by_key)) for trials in planned[id(suite)]]
        trials = [(one.trial, one.status) for one in found]
        reused = any(row.reused for row in _rows_of(planned[id(suite)], by_key))
        partial = tuple(dict.fromkeys((*why, *([REUSED] if reused else []), *why_partial(suite, trials, settings))))
        exam_row = _exam_row(suite.exam, found, run_id=run_id, ts=timestamp(now), partial=bool(partial))
        yield ExamAttempt(suite, suite.exam, exam_row, _by_case(found), partial=partial)


def _trials(suite: Suite, plan: Plan) -> Iterator[list[Trial]]:
    """The trials of each case on each target, in the exam's order."""
    return (list(plan.samples(suite, *planned)) for planned in plan.planned(suite))


def _rows_of(cases: Iterable[Sequence[Trial]], rows: Mapping[str, Row]) -> Iterator[Row]:
    return (row for trials in cases for trial in trials if (row := rows.get(trial.key)) is not None)


def _status(trials: Sequence[Trial], rows: Mapping[str, Row]) -> Status:
    ended = [row for trial in trials if (row := rows.get(trial.key)) is not None]
    from agentv.model.run.cases import Sample  # most runs are of no exam
    from agentv.stats.samples.deciding import rule_of, verdict_over

    samples = [Sample(row.status, row.score, row.gates) for row in ended]
    return verdict_over(samples, rule_of(trials[0]))


def _by_case(found: Iterable[_Verdict]) -> dict[str, Status]:
    worst: dict[str, Status] = {}
    for one in found:
        case = one.trial.case.id
        worst[case] = min(worst.get(case, one.status), one.status, key=_WORST.index)
    return worst


def _exam_row(exam: Exam, found: Sequence[_Verdict], *, run_id: str, ts: str, partial: bool) -> ExamRow:
    from agentv.prompts.evidence import digests, prompt_sha256

    files = digests(exam.texts)
    statuses = [one.status for one in found]
    failed = tuple(case for case, status in _by_case(found).items() if status != "passed")
    return ExamRow(
        ts=ts,
        all_passed=bool(found) and not failed,
        total=len(found),
        passed=statuses.count("passed"),
        failed_cases=failed,
        run_id=run_id,
        prompt_sha256=prompt_sha256(files),
        files=files,
        model=_names(one.trial.target for one in found if not one.trial.case.asks_judge),
        judge=_names(judge for one in found for judge in _judges(one.trial)),
        errored=statuses.count("errored"),
        partial=partial,
    )


def _judges(trial: Trial) -> Iterator[TargetSpec]:
    """Who judged a trial."""
    if trial.case.asks_judge:
        yield trial.target
    for name in asked(trial.case.assertions):
        judge = trial.judge_called(name)
        if judge is not None:
            yield judge


def _names(specs: Iterable[TargetSpec]) -> str | None:
    """`anthropic:claude-opus-4-7`, or the target's name where no model is known; None where nobody was asked."""
    return ", ".join(dict.fromkeys(map(_name, specs))) or None


def _name(spec: TargetSpec) -> str:
    model = spec.public.get("model")
    return f"{spec.provider}:{model}" if isinstance(model, str) else spec.name
