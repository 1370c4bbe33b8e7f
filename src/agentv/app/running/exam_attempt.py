"""Results of prompts' exams, appended to each prompt's log after a run (SPEC section 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.settings import EvalSettings, parse_shard
from agentv.authoring.source.files import is_directory, repository_root, upwards
from agentv.errors import StoreError
from agentv.model.run.trial import Status, Trial
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.exam import DESCRIPTION, TARGET, Exam, ExamRow, normalised
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.values.formatting import timestamp
from agentv.model.values.values import Json

if TYPE_CHECKING:
    from agentv.app.planning.preparation import Prepared
    from agentv.model.run.row import Row

_WORST_FIRST: Sequence[Status] = ("errored", "skipped", "shown", "failed", "passed")


class ExamAttempt(Struct, frozen=True):
    """The result of one exam in a run.

    Attributes:
        exam_row: the row for the log.
        verdicts: case id → verdict; the worst one for a case on several targets.
        notes: notes about the log, such as a torn line that was removed.
        error: why the row could not be appended; None if it was.
        partial: reasons why the attempt is not evidence; empty if it ran the whole exam with the exam's settings.
    """

    suite: Suite
    exam: Exam
    exam_row: ExamRow
    verdicts: Mapping[str, Status]
    notes: tuple[str, ...] = ()
    error: str | None = None
    partial: tuple[str, ...] = ()


def record_attempts(
    prepared: Prepared, rows: Iterable[Row], *, run_id: str, why: Sequence[str]
) -> tuple[ExamAttempt, ...]:
    """Append the exam attempts of a run to their logs, and return them; an attempt has the error if its log failed.

    Args:
        prepared: the plan that ran.
        rows: of the run, in file order; the last row of a trial counts.
        run_id: of the run.
        why: reasons why the whole run is not evidence, such as an interruption.
    """
    given = list(exam_attempts(prepared, rows, run_id=run_id, now=datetime.now(UTC), why=why))
    return tuple(map(append_to_log, given))


def append_to_log(attempt: ExamAttempt) -> ExamAttempt:
    """Append an attempt to its log. A failure to store its texts for `prompt diff` only adds a note."""
    from agentv.prompts import appending, disk

    exam = attempt.exam
    notes: tuple[str, ...] = ()
    try:
        disk.store_texts(texts_home(exam.directory), exam.texts)
    except StoreError as error:
        notes = (f"{error}; 'agentv prompt diff' cannot show what changed",)
    try:
        return replace(attempt, notes=(*notes, *appending.append(exam.directory, attempt.exam_row)))
    except StoreError as error:
        return replace(attempt, error=str(error))


def texts_home(directory: str) -> Path:
    """Return the directory whose `.agentv` stores a prompt's texts: the closest above it, else the repository root."""
    root = repository_root(directory)
    found = (parent for parent in upwards(directory, root) if is_directory(str(Path(parent, ".agentv"))))
    return Path(next(found, root))


def exam_attempts(
    prepared: Prepared, rows: Iterable[Row], *, run_id: str, now: datetime, why: Sequence[str] = ()
) -> Iterator[ExamAttempt]:
    """Yield the result of each exam among the suites; an exam without a selected case has none.

    Args:
        prepared: the plan that ran.
        rows: as for `record_attempts`.
        run_id: of the run.
        now: the time when the run ended.
        why: as for `record_attempts`.
    """
    from agentv.prompts.gates import digests, prompt_sha256  # most runs have no exam

    plan, settings = prepared.plan, prepared.settings
    exams = [suite for suite in prepared.suites if suite.exam is not None]
    # the trials of each case on each target, in the exam's order
    planned = {id(suite): [list(plan.samples(suite, *one)) for one in plan.planned(suite)] for suite in exams}
    keys = {trial.key for cases in planned.values() for trials in cases for trial in trials}
    by_key = {row.key: row for row in rows if row.key in keys}
    for suite in exams:
        exam, cases = suite.exam, planned[id(suite)]
        if exam is None or not cases:
            continue
        found = [(trials[0], _status(trials, by_key)) for trials in cases]
        reasons = list(why)
        if any(trial.key in by_key and by_key[trial.key].reused for trials in cases for trial in trials):
            reasons.append("some answers were reused (rows with 'reused')")
        partial = tuple(dict.fromkeys((*reasons, *why_partial(suite, found, settings))))
        worst: dict[str, Status] = {}
        for trial, status in found:
            worst[trial.case.id] = min(worst.get(trial.case.id, status), status, key=_WORST_FIRST.index)
        failed = tuple(case for case, status in worst.items() if status != "passed")
        files, statuses = digests(exam.texts), [status for _, status in found]
        exam_row = ExamRow(
            ts=timestamp(now),
            all_passed=not failed,
            total=len(found),
            passed=statuses.count("passed"),
            failed_cases=failed,
            run_id=run_id,
            prompt_sha256=prompt_sha256(files),
            files=files,
            model=_names(trial.target for trial, _ in found if not trial.case.asks_judge),
            judge=_names(judge for trial, _ in found for judge in _judges(trial)),
            errored=statuses.count("errored"),
            partial=bool(partial),
        )
        yield ExamAttempt(suite, exam, exam_row, worst, partial=partial)


def _status(trials: Sequence[Trial], rows: Mapping[str, Row]) -> Status:
    from agentv.model.run.cases import Sample
    from agentv.stats.samples.deciding import rule_of, verdict_over

    ended = [row for trial in trials if (row := rows.get(trial.key)) is not None]
    samples = [Sample(row.status, row.score, row.gates) for row in ended]
    return verdict_over(samples, rule_of(trials[0]))


def _judges(trial: Trial) -> Iterator[TargetSpec]:
    """Yield the judges that a trial's assertions call."""
    if trial.case.asks_judge:
        yield trial.target
    for name in judge_names(trial.case.assertions):
        judge = trial.judge_called(name)
        if judge is not None:
            yield judge


def _names(specs: Iterable[TargetSpec]) -> str | None:
    """Join names such as `anthropic:claude-opus-4-7`, or targets' names if they have no model; None without specs."""
    models = ((spec, spec.public.get("model")) for spec in specs)
    names = (f"{spec.provider}:{model}" if isinstance(model, str) else spec.name for spec, model in models)
    return ", ".join(dict.fromkeys(names)) or None


def why_run_partial(
    settings: EvalSettings, before: Mapping[str, Json], *, interrupted: bool, cached: bool
) -> Iterator[str]:
    """Yield the reasons why a whole run is not evidence, from this process and those that it resumes.

    Args:
        settings: of this process.
        before: settings of the earlier processes, as in `run.json`.
        interrupted: the run was interrupted.
        cached: answers may come from the cache. Rows show this for targets' answers, but not for judges'.
    """
    reasons = {
        "it was interrupted": interrupted,
        "answers from a cassette (--replay)": settings.replay is not None or before.get("replay") is not None,
        "answers of another run (--regrade)": settings.regrade is not None or before.get("regrade") is not None,
        "failed cases ran again (--rerun=failed)": "failed" in (settings.rerun, before.get("rerun")),
        "only cases that had not passed ran (--last-failed)": settings.failed is not None
        or before.get("last_failed") is not None,
        "one shard of the cases ran (--shard)": settings.shard is not None and parse_shard(settings.shard)[1] > 1,
        "cases ran again while files were edited (--watch)": settings.watched is not None
        or before.get("watched") is not None,
        "answers may come from the cache (--no-cache calls the target again)": cached or before.get("cache"),
    }
    return (reason for reason, holds in reasons.items() if holds)


def why_partial(suite: Suite, found: Sequence[tuple[Trial, Status]], settings: EvalSettings) -> Iterator[str]:
    """Yield the reasons why an exam attempt is not evidence.

    Args:
        suite: the exam.
        found: the first trial of each case on each target, with the verdict of the case.
        settings: of the command.
    """
    exam = suite.exam
    if exam is None:
        return
    if exam.other_model or _is_other_judge(suite):
        yield "another model or judge than the exam specifies, or other inputs"
    if settings.variables:
        yield "--var"
    if settings.threshold is not None:
        yield "--threshold"
    if any(status == "skipped" for _, status in found):
        yield "some cases did not run"
    if any(trial.repeat < (trial.case.repeat or suite.run.repeat or 1) for trial, _ in found):
        yield "fewer repeats than the exam requires"
    ran = {trial.case.id for trial, _ in found}
    if any(case.id not in ran for case in suite.cases):
        yield "some cases were excluded"
    yield from (f"{path} was changed during the exam" for path in _changed(exam))


def _changed(exam: Exam) -> Iterator[str]:
    """Yield the exam's files that changed since it was loaded, as code is read again when it runs."""
    for path, data in exam.texts.items():
        if path == DESCRIPTION or path.startswith(TARGET):
            continue
        try:
            now = normalised(Path(exam.directory, path).read_bytes())
        except OSError:
            now = None
        if now != data:
            yield path


def _is_other_judge(suite: Suite) -> bool:
    """Whether the judge of the command line differs from the one that would judge without it."""
    forced = suite.forced_judge
    if forced is None:
        return False
    of_entries = {name for case in suite.cases for name in judge_names(case.assertions) if name is not None}
    named = [suite.judge, *map(suite.judges.get, of_entries), *(case.judge for case in suite.cases)]
    if not any(named):
        targets = (*suite.targets, *(case.target for case in suite.cases if case.target is not None))
        named = [suite.default_judge, *(suite.judges.get(one.judge) for one in targets if one.judge)]
    return any(one is not None and one.fingerprint != forced.fingerprint for one in named)


def judge_names(entries: Iterable[AssertionEntry]) -> Iterator[str | None]:
    """Yield the judge's name (None: the default) of each entry that needs a judge."""
    for entry in (inner for one in entries for inner in one.nested()):
        if getattr(entry.assertion, "needs_judge", False):
            yield getattr(entry.assertion, "judge", None)
