"""Finished trials from rows, for reports of a stored or resumed run."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from agentv.errors import StoreError
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.run.sampling import SamplingStop
from agentv.model.run.trial import SCHEMA_VERSION, Score, Status, Trial, TrialResult
from agentv.model.run.work import StoredWork
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings
from agentv.model.suite.suite import DEFAULT_TIMEOUT_S, Case, Suite, TargetSpec
from agentv.model.suite.workspace import SandboxName, Variant
from agentv.model.values.message import Message, messages_from_json
from agentv.model.values.response import Attempt, CallFailure, Failure, TargetResponse
from agentv.model.values.retrieved import read_context
from agentv.model.values.span import Span
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import EMPTY
from agentv.ports import Executor, Target
from agentv.store.files.lines import lines_at, read_lines
from agentv.store.rows.reading import StoredRow, is_torn, not_a_row
from agentv.store.rows.rows import FailureRow, ScoreRow, TurnRow


def read_results(path: Path, root: str, without: Container[int] = ()) -> Iterator[TrialResult]:
    """The finished trials of an `index.jsonl`, in the order of their rows.

    They contain what rows contain: names, scores, checks and positions of assertions, but no options, secrets or
    settings. They can be shown and counted, but not run. An incomplete last line is skipped.

    Args:
        path: of the file; a missing file has no rows.
        root: absolute path of the repository root, which paths in rows are relative to.
        without: numbers of lines, from 1, that are skipped.

    Raises:
        StoreError: a line is not a row; the message names it.
    """
    for number, line in read_lines(path):
        if number in without:
            continue
        try:
            yield _result(_decode(line), root)
        except _NO_ROW as error:
            if is_torn(line):
                return
            raise not_a_row(path, number, error) from error


def read_results_at(path: Path, root: str, places: Iterable[int]) -> Iterator[TrialResult]:
    """Read as `read_results` does, the rows that begin at these byte offsets, in this order.

    Raises:
        StoreError: no row begins at an offset.
    """
    for place, line in lines_at(path, places):
        try:
            yield _result(_decode(line), root)
        except _NO_ROW as error:
            raise StoreError(f"{path}: no row of a run starts at byte {place}: {error}") from error


def result_in(line: bytes, root: str) -> TrialResult:
    """The finished trial in a line of `index.jsonl`.

    Raises:
        ValueError: it is not a row; the message says why.
        StoreError: a newer agentv wrote it.
    """
    try:
        row = _decode(line)
        if row.schema_version <= SCHEMA_VERSION:
            return _result(row, root)
    except _NO_ROW as error:
        raise ValueError(str(error)) from error
    raise StoreError(f"written by a newer agentv (format {row.schema_version}; this one reads up to {SCHEMA_VERSION})")


class _ResultRow(StoredRow, gc=False, kw_only=True):
    """The keys of a row that make up a result."""

    key: str
    status: Status
    scores: tuple[ScoreRow, ...]
    score: float | None
    sample: int = 1
    timestamp: str = ""
    input: tuple[Mapping[str, Any], ...] = ()
    output: str | None = None
    expected_output: str | None = None
    error: FailureRow | None = None
    duration_ms: float = 0.0
    attempts: int = 1
    token_usage: TokenUsage | None = None
    judge_token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    judge_cost_usd: float | None = None
    metadata: Mapping[str, Any] = EMPTY
    case_sha256: str = ""
    tags: tuple[str, ...] = ()
    turns: tuple[TurnRow, ...] = ()
    retries: tuple[Attempt, ...] = ()
    reused: bool = False
    notes: tuple[str, ...] = ()
    context: tuple[Any, ...] = ()
    response_metadata: Mapping[str, Any] = EMPTY
    thoughts: str = ""
    vars: Mapping[str, Any] = EMPTY
    finish_reason: str | None = None
    stopped: SamplingStop | None = None
    sandbox: SandboxName | None = None
    agent_version: str | None = None
    trace_path: str | None = None
    diff_path: str | None = None
    native_path: str | None = None
    workspace_path: str | None = None
    work_path: str | None = None
    work_sha256: str | None = None


_decode = msgspec.json.Decoder(_ResultRow).decode

_NO_ROW = (msgspec.DecodeError, UnicodeDecodeError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class _StoredAssertion:
    """Placeholder for the options of an assertion, which rows do not contain."""

    def label(self) -> str:
        return ""

    def grade(self, context: AssertionContext) -> Grade:
        raise NotImplementedError(f"the row of {context.case_id} holds a grade, not the assertion that gave it")


@dataclass(frozen=True, slots=True)
class _StoredTarget:
    """Placeholder for the settings of a target, which rows do not contain."""

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        raise NotImplementedError(f"the row of {spec.name} holds an answer, not how it was had ({executor})")


def _result(row: _ResultRow, root: str) -> TrialResult:
    return TrialResult(
        trial=_trial(row, root),
        status=row.status,
        score=row.score,
        output=row.output,
        input=messages_from_json(row.input),
        scores=tuple(_score(score, root) for score in row.scores),
        error=_failure(row.error) if row.error else None,
        duration_ms=row.duration_ms,
        timestamp=row.timestamp,
        attempts=row.attempts,
        token_usage=row.token_usage,
        cost_usd=row.cost_usd,
        judge_cost_usd=row.judge_cost_usd,
        metadata=row.metadata,
        turns=tuple(_turn(turn) for turn in row.turns),
        retries=row.retries,
        judge_token_usage=row.judge_token_usage,
        reused=row.reused,
        notes=row.notes,
        context=read_context(row.context),
        response_metadata=row.response_metadata,
        thoughts=row.thoughts,
        finish_reason=row.finish_reason,
        stopped=row.stopped,
        stored=_stored(row),
    )


def _failure(row: FailureRow) -> Failure:
    if row.stops is UNSET:
        return Failure(row.code, row.message, row.retryable)
    return CallFailure(row.code, row.message, row.retryable, stops=row.stops)


def _turn(row: TurnRow) -> TargetResponse:
    messages = messages_from_json(row.messages or ())
    return TargetResponse(
        row.output,
        messages,
        row.token_usage,
        row.cost_usd,
        row.duration_ms,
        row.finish_reason or None,
        metadata=row.response_metadata or EMPTY,
        context=read_context(row.context or ()),
        thoughts=row.thoughts or "",
    )


def _trial(row: _ResultRow, root: str) -> Trial:
    case = Case(
        row.test_id,
        messages_from_json(row.input),
        (),
        expected_output=_reference(row.expected_output),
        tags=row.tags,
        metadata=row.metadata,
        vars=row.vars,
        prompt_id=row.prompt_id,
        sha256=row.case_sha256,
        conversation_id=row.conversation_id,
        cluster_key=row.cluster_key,
        cluster=row.cluster,
    )
    return Trial(
        suite=Suite(row.suite, (case,), path=_absolute(row.eval_path, root) if row.eval_path else ""),
        case=case,
        target=TargetSpec(row.target, "", _StoredTarget()),
        threshold=row.threshold,
        timeout_s=DEFAULT_TIMEOUT_S,
        sample=row.sample,
        key=row.key,
        repeat=row.repeat,
        aggregate=row.aggregate,
        alpha=row.alpha,
        variant=Variant(row.variant) if row.variant else None,
    )


def _stored(row: _ResultRow) -> StoredWork | None:
    """The work of the agent of a row; None if the row has none."""
    found = StoredWork(
        row.sandbox,
        row.agent_version,
        row.trace_path,
        row.diff_path,
        row.native_path,
        row.workspace_path,
        row.work_path,
        row.work_sha256,
    )
    return None if found == _NO_WORK else found


_NO_WORK = StoredWork()


def _reference(text: str | None) -> tuple[Message, ...]:
    """The reference answer: one message, whatever its form in the eval file."""
    return (Message("assistant", text),) if text else ()


def _score(row: ScoreRow, root: str) -> Score:
    settings = AssertionSettings(name=row.name, weight=row.weight, required=row.required)
    entry = AssertionEntry(row.type, _StoredAssertion(), settings, _span(row.source, root))
    return Score(entry, _grade(row), row.duration_ms)


def _grade(row: ScoreRow) -> Grade:
    if row.error:
        return Grade.errored(row.error.code, row.error.message, details=row.details)
    asked = None if row.judge is UNSET else row.judge
    checks = tuple(row.assertions)
    return Grade(
        row.score or 0.0,
        row.passed or False,
        checks,
        row.reason,
        row.details,
        has_own_threshold=row.counted is not UNSET,
        asked_judge=asked,
        needs=row.needs if row.needs is not UNSET else None,
    )


def _span(source: str | None, root: str) -> Span | None:
    if source is None:
        return None
    path, _, line = source.rpartition(":")
    return Span(_absolute(path, root), int(line), 1, int(line), 1)


@lru_cache(maxsize=1024)  # a few files occur in all rows of a run, and joining paths took a quarter of the time
def _absolute(path: str, root: str) -> str:
    return str(Path(root, path))
