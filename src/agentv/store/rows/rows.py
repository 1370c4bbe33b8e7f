"""The rows of `index.jsonl`, and how a finished trial becomes one (SPEC section 13).

Beyond the keys of SPEC section 13, in their order, a row ends with those of `tags`, `judge_cost_usd`, `repeat`,
`aggregate`, `conversation_id`, `turns`, `retries`, `judge_token_usage`, `reused`, `alpha`, `stopped`,
`expected_output`, `cluster_key`, `cluster`, `variant`, `sandbox`, `agent_version`, `trace_path`, `diff_path`,
`native_path`, `workspace_path`, `notes`, `context`, `response_metadata` and `thoughts` that say something: totals are
computed from rows alone, and so are views. A score ends with `error` where it errored, with `judge` where a judge gave
it, and with `counted` where another number than its `score` counts, and `needs` where it has a pass
mark. `input` and `output` of a conversation are its
transcript; `turns` says what each call gave. `context` is what the target retrieved, `response_metadata` what else it
says of its reply; `thoughts` a block that began the answer and was not graded; `metadata` is the case's, which a target
cannot change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import astuple

from agentv.model.run.grade import AskedJudge, Check
from agentv.model.run.sampling import Why
from agentv.model.run.trial import SCHEMA_VERSION, Score, Status, TrialResult
from agentv.model.run.work import StoredWork
from agentv.model.suite.suite import Aggregate, Case
from agentv.model.values.message import Message, reference_text
from agentv.model.values.response import Attempt, CallFailure, Failure, TargetResponse
from agentv.model.values.retrieved import context_json
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject

LONGEST_VARIABLE = 2000
"""Characters of a variable that a row holds."""

_NOTHING: dict[str, Any] = {}


class ErrorRow(Struct, gc=False):
    """Why a grade could not be given."""

    code: str
    message: str


class FailureRow(Struct, gc=False):
    """Why a trial has no verdict. `stops`: it also stopped its target, so that a resume tries again."""

    code: str
    message: str
    retryable: bool
    stops: bool | UnsetType = UNSET


class RetryRow(Struct, gc=False):
    """A call that gave no answer and was made again."""

    code: str
    message: str
    duration_ms: float
    waited_ms: float


class ScoreRow(Struct, gc=False, rename={"passed": "pass"}):
    """The grade of one assertion. `score` and `passed` are None where it errored.

    `counted`: what the case's score is made of, where that is not `score`. `needs`: the score at which it passes.
    """

    name: str
    type: str
    score: float | None
    passed: bool | None
    weight: float
    required: bool | float
    assertions: Sequence[Check]
    reason: str | None
    details: Mapping[str, Any]
    duration_ms: float
    source: str | None = None
    error: ErrorRow | UnsetType = UNSET
    judge: AskedJudge | UnsetType = UNSET
    counted: float | UnsetType = UNSET
    needs: float | UnsetType = UNSET


class TurnRow(Struct, gc=False):
    """The target's answer to one turn. `messages` are there if it said more than its `output`."""

    output: str | None
    duration_ms: float | None
    token_usage: TokenUsage | None
    cost_usd: float | None
    messages: Sequence[Mapping[str, Any]] | UnsetType = UNSET
    context: Sequence[Any] | UnsetType = UNSET
    response_metadata: Mapping[str, Any] | UnsetType = UNSET
    thoughts: str | UnsetType = UNSET
    finish_reason: str | UnsetType = UNSET


class StoppedRow(Struct, gc=False):
    """Why a case got no more samples."""

    why: Why
    samples: int
    passed: int
    low: float
    high: float


class Row(Struct, gc=False):
    """One finished trial, its keys in the order of SPEC section 13. Durations are milliseconds, costs US dollars."""

    test_id: str
    suite: str
    eval_path: str | None
    target: str
    prompt_id: str | None
    vars: JsonObject
    finish_reason: str | None
    sample: int
    timestamp: str
    status: Status
    score: float | None
    threshold: float
    output: str | None
    input: Sequence[JsonObject]
    scores: Sequence[ScoreRow]
    error: FailureRow | None
    duration_ms: float
    token_usage: TokenUsage | None
    cost_usd: float | None
    attempts: int
    metadata: JsonObject
    case_sha256: str
    key: str
    schema_version: int = SCHEMA_VERSION
    tags: Sequence[str] | UnsetType = UNSET
    judge_cost_usd: float | UnsetType = UNSET
    repeat: int | UnsetType = UNSET
    aggregate: Aggregate | UnsetType = UNSET
    conversation_id: str | UnsetType = UNSET
    turns: Sequence[TurnRow] | UnsetType = UNSET
    retries: Sequence[RetryRow] | UnsetType = UNSET
    judge_token_usage: TokenUsage | UnsetType = UNSET
    reused: bool | UnsetType = UNSET
    alpha: float | UnsetType = UNSET
    stopped: StoppedRow | UnsetType = UNSET
    expected_output: str | UnsetType = UNSET
    cluster_key: str | UnsetType = UNSET
    cluster: str | UnsetType = UNSET
    variant: str | UnsetType = UNSET
    sandbox: str | UnsetType = UNSET
    agent_version: str | UnsetType = UNSET
    trace_path: str | UnsetType = UNSET
    diff_path: str | UnsetType = UNSET
    native_path: str | UnsetType = UNSET
    workspace_path: str | UnsetType = UNSET
    work_path: str | UnsetType = UNSET
    work_sha256: str | UnsetType = UNSET
    notes: Sequence[str] | UnsetType = UNSET
    context: Sequence[Any] | UnsetType = UNSET
    response_metadata: Mapping[str, Any] | UnsetType = UNSET
    thoughts: str | UnsetType = UNSET


class RelativePaths(dict[str, str]):
    """Absolute path → the path as rows show it: relative where it lies below `root`. Remembers what it was asked."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self._prefix = root.rstrip("/") + "/"

    def __missing__(self, path: str) -> str:
        shown = self[path] = path.removeprefix(self._prefix)
        return shown


def row_of(result: TrialResult, places: RelativePaths) -> Row:
    """The row of a finished trial."""
    trial = result.trial
    case = trial.case
    suite = trial.suite
    row = Row(
        case.id,
        suite.name,
        places[suite.path] if suite.path else None,
        trial.target.name,
        case.prompt_id,
        _shown_vars(case.vars) if case.vars else _NOTHING,
        result.finish_reason,
        trial.sample,
        result.timestamp,
        result.status,
        result.score,
        trial.threshold,
        result.output,
        [_message_row(message) for message in result.input],
        _score_rows(result.scores, places),
        _failure_row(result.error) if result.error is not None else None,
        int(result.duration_ms * 1000) / 1000,
        result.token_usage,
        result.cost_usd,
        result.attempts,
        _merged(case.metadata, result.metadata),
        case.sha256,
        trial.key,
        SCHEMA_VERSION,
        case.tags or UNSET,
        UNSET if result.judge_cost_usd is None else result.judge_cost_usd,
        trial.repeat if trial.repeat > 1 else UNSET,
        trial.aggregate if trial.repeat > 1 else UNSET,
        case.conversation_id or UNSET,
        [_turn_row(answer) for answer in result.turns] if result.turns else UNSET,
        [_retry_row(attempt) for attempt in result.retries] if result.retries else UNSET,
        UNSET if result.judge_token_usage is None else result.judge_token_usage,
        result.reused or UNSET,
        UNSET if trial.alpha is None else trial.alpha,
        UNSET if result.stopped is None else StoppedRow(*astuple(result.stopped)),
        _reference(case) or UNSET if case.expected_output or case.turns else UNSET,
        UNSET if case.cluster is None else case.cluster_key or "",
        UNSET if case.cluster is None else case.cluster,
    )
    if trial.variant is not None:
        row.variant = trial.variant.name
    if result.notes:
        row.notes = result.notes
    if result.context:
        row.context = context_json(result.context)
    if result.response_metadata:
        row.response_metadata = result.response_metadata
    if result.thoughts:
        row.thoughts = result.thoughts
    if result.stored is not None:
        _add_work(row, result.stored)
    return row


def _add_work(row: Row, stored: StoredWork) -> None:
    """Add what is stored of an agent's work."""
    row.sandbox = stored.sandbox or UNSET
    row.agent_version = stored.agent_version or UNSET
    row.trace_path = stored.trace_path or UNSET
    row.diff_path = stored.diff_path or UNSET
    row.native_path = stored.native_path or UNSET
    row.workspace_path = stored.workspace_path or UNSET
    row.work_path = stored.work_path or UNSET
    row.work_sha256 = stored.work_sha256 or UNSET


def _reference(case: Case) -> str:
    """What the output is held against, as text: of a case with turns the reference of the last one."""
    return reference_text(case.turns[-1].expected_output if case.turns else case.expected_output)


def _failure_row(failure: Failure) -> FailureRow:
    stops = isinstance(failure, CallFailure) and failure.stops
    return FailureRow(failure.code, failure.message, failure.retryable, stops or UNSET)


def _retry_row(attempt: Attempt) -> RetryRow:
    return RetryRow(attempt.code, attempt.message, attempt.duration_ms, attempt.waited_ms)


def _turn_row(answer: TargetResponse) -> TurnRow:
    return TurnRow(
        answer.output,
        None if answer.duration_ms is None else int(answer.duration_ms * 1000) / 1000,
        answer.token_usage,
        answer.cost_usd,
        [_message_row(message) for message in answer.messages] or UNSET,
        context_json(answer.context) or UNSET,
        answer.metadata or UNSET,
        answer.thoughts or UNSET,
        answer.finish_reason or UNSET,
    )


def _score_rows(scores: Sequence[Score], places: RelativePaths) -> list[ScoreRow]:
    # the hottest loop of a run: five rounds a trial, so attributes are read once and nothing is called that need not be
    rows: list[ScoreRow] = []
    for score in scores:
        entry, grade, span = score.entry, score.grade, score.entry.span
        settings = entry.settings
        row = ScoreRow(
            entry.name,
            entry.shown_type if settings.negate else entry.type,
            grade.score,
            grade.passed,
            settings.weight,
            settings.required,
            grade.checks,
            grade.reason,
            grade.details or _NOTHING,
            int(score.duration_ms * 1000) / 1000,  # to the microsecond
            f"{places[span.file]}:{span.line}" if span else None,
        )
        if grade.error is not None:
            row.score = row.passed = None
            row.error = ErrorRow(grade.error.code, grade.error.message)
        else:
            if grade.asked_judge is not None:
                row.judge = grade.asked_judge
            if grade.has_own_threshold and grade.counted != grade.score:
                row.counted = grade.counted
            if grade.needs is not None:
                row.needs = grade.needs
        rows.append(row)
    return rows


def _message_row(message: Message) -> JsonObject:
    if message.name is None and not message.tool_calls and isinstance(message.content, str):
        return {"role": message.role, "content": message.content}
    return message.as_json()


def _shown_vars(values: JsonObject) -> dict[str, Any]:
    """The variables, those that are long cut to their beginning, with their length."""
    shown: dict[str, Any] = {}
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        long = len(text) > LONGEST_VARIABLE
        shown[name] = f"{text[:LONGEST_VARIABLE]}… ({len(text):,} characters)" if long else value
    return shown


def _merged(authored: JsonObject, answered: JsonObject) -> Mapping[str, Any]:
    if authored and answered:
        return {**authored, **answered}
    return authored or answered or _NOTHING
