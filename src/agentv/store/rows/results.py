"""Finished trials restored from rows, for reports of stored and resumed runs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from pathlib import Path

from agentv.errors import StoreError
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.run.row import Row, ScoreRow, TurnRow
from agentv.model.run.trial import Score, StoredWork, Trial, TrialResult
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings
from agentv.model.suite.suite import DEFAULT_TIMEOUT_S, Case, Suite, TargetSpec
from agentv.model.suite.workspace import Variant
from agentv.model.values.message import Message, messages_from_json
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.retrieved import read_context
from agentv.model.values.values import Span
from agentv.store.files.lines import lines_at
from agentv.store.rows.reading import read_lines_as, row_in


def read_results(path: Path, root: str, without: Container[int] = ()) -> Iterator[TrialResult]:
    """Yield the finished trials of an `index.jsonl`, in the order of their rows.

    They have what rows have: names, scores, checks and positions of assertions, but no options, secrets or settings.
    They can be shown and counted, but not run. An incomplete last line is skipped.

    Args:
        path: path of the file; a missing file has no rows.
        root: absolute path of the repository root, to which paths in rows are relative.
        without: numbers of lines to skip, from 1.

    Raises:
        StoreError: a line is not a row, or a newer agentv wrote it; the message names it.
    """
    return (result for _, result in read_lines_as(lambda line: result_in(line, root), path, without))


def read_results_at(path: Path, root: str, places: Iterable[int]) -> Iterator[TrialResult]:
    """Yield the finished trials of the rows at these byte offsets, in this order, otherwise like `read_results`.

    Raises:
        StoreError: there is no row at an offset, or a newer agentv wrote it.
    """
    for place, line in lines_at(path, places):
        try:
            yield result_in(line, root)
        except ValueError as error:
            raise StoreError(f"{path}: no row of a run starts at byte {place}: {error}") from error
        except StoreError as error:
            raise StoreError(f"{path}: {error}") from error


def result_in(line: bytes, root: str) -> TrialResult:
    """Return the finished trial in a line of `index.jsonl`.

    Raises:
        ValueError: it is not a row; the message says why.
        StoreError: a newer agentv wrote it.
    """
    return result_of(row_in(line), root)


@dataclass(frozen=True, slots=True)
class _StoredAssertion:
    """Placeholder for the options of an assertion, which rows do not contain."""

    def label(self) -> str:
        return ""

    def grade(self, context: AssertionContext) -> Grade:
        raise NotImplementedError(f"the row of {context.case_id} holds a grade, not the assertion that gave it")


def result_of(row: Row, root: str) -> TrialResult:
    """Return the finished trial in a row."""
    messages = messages_from_json(row.input)
    work = _work_of(row)
    found = row.error
    error: Failure | None = None
    if found is not None and found.stops:
        error = CallFailure(found.code, found.message, found.retryable, stops=True)
    elif found is not None:
        error = Failure(found.code, found.message, found.retryable)
    return TrialResult(
        trial=_trial(row, messages, root),
        status=row.status,
        score=row.score,
        output=row.output,
        input=messages,
        scores=tuple(_score(score, root) for score in row.scores),
        error=error,
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
        time_to_first_token_ms=row.time_to_first_token_ms,
        stopped=row.stopped,
        stored=StoredWork(*work) if any(work) else None,
        user_done=row.user_done,
        user_cost_usd=row.user_cost_usd,
        user_token_usage=row.user_token_usage,
    )


def _turn(row: TurnRow) -> TargetResponse:
    return TargetResponse(
        row.output,
        messages_from_json(row.messages),
        row.token_usage,
        row.cost_usd,
        row.duration_ms,
        row.finish_reason,
        metadata=row.response_metadata,
        context=read_context(row.context),
        thoughts=row.thoughts,
        time_to_first_token_ms=row.time_to_first_token_ms,
    )


def _trial(row: Row, messages: tuple[Message, ...], root: str) -> Trial:
    case = Case(
        row.test_id,
        messages,
        (),
        expected_output=(Message("assistant", row.expected_output),) if row.expected_output else (),
        tags=row.tags,
        metadata=row.metadata,
        vars=row.vars,
        prompt_id=row.prompt_id,
        sha256=row.case_sha256,
        conversation_id=row.conversation_id,
        cluster_key=row.cluster_key,
        cluster=row.cluster,
        position=row.position,
    )
    return Trial(
        suite=_suite(row.suite, row.eval_path, root),
        case=case,
        target=_target(row.target),
        threshold=row.threshold,
        timeout_s=DEFAULT_TIMEOUT_S,
        sample=row.sample,
        key=row.key,
        repeat=row.repeat,
        aggregate=row.aggregate or "mean",
        alpha=row.alpha,
        variant=Variant(row.variant) if row.variant else None,
    )


@lru_cache(maxsize=1024)
def _suite(name: str, path: str | None, root: str) -> Suite:
    return Suite(name, (), path=_absolute(path, root) if path else "")


@lru_cache(maxsize=1024)
def _target(name: str) -> TargetSpec:
    return TargetSpec(name, "", None)  # rows do not contain its settings


_work_of = attrgetter(*StoredWork.__struct_fields__)


def _score(row: ScoreRow, root: str) -> Score:
    settings = AssertionSettings(name=row.name, weight=row.weight, required=row.required)
    span = None
    if row.source is not None:
        path, _, line = row.source.rpartition(":")
        span = Span(_absolute(path, root), int(line), 1, int(line), 1)
    return Score(AssertionEntry(row.type, _StoredAssertion(), settings, span), _grade(row), row.duration_ms)


def _grade(row: ScoreRow) -> Grade:
    if row.error:
        return Grade.errored(row.error.code, row.error.message, details=row.details)
    return Grade(
        row.score or 0.0,
        row.passed or False,
        tuple(row.assertions),
        row.reason,
        row.details,
        has_own_threshold=row.counted is not None,
        asked_judge=row.judge,
        needs=row.needs,
    )


@lru_cache(maxsize=1024)  # the rows of a run name only a few files, and joining paths took a quarter of the time
def _absolute(path: str, root: str) -> str:
    return str(Path(root, path))
