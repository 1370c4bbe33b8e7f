"""Conversion of finished trials to rows of `index.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from agentv.model.run.row import ErrorRow, FailureRow, Row, ScoreRow, TurnRow
from agentv.model.run.trial import Score, TrialResult
from agentv.model.values.formatting import cut
from agentv.model.values.message import Message, reference_text
from agentv.model.values.response import CallFailure, TargetResponse
from agentv.model.values.retrieved import context_json
from agentv.model.values.values import EMPTY, JsonObject

LONGEST_VARIABLE = 2000
"""Maximum characters of a variable in a row."""


def row_of(result: TrialResult, root: str) -> Row:
    """Return the row of a finished trial.

    Args:
        result: the trial.
        root: absolute path of the repository root; paths in the row are relative to it.
    """
    trial, above = result.trial, root.rstrip("/") + "/"
    case = trial.case
    suite = trial.suite
    several = trial.repeat > 1
    error = result.error
    expected = case.turns[-1].expected_output if case.turns else case.expected_output
    stops = isinstance(error, CallFailure) and error.stops
    return Row(
        test_id=case.id,
        suite=suite.name,
        eval_path=suite.path.removeprefix(above) if suite.path else None,
        target=trial.target.name,
        prompt_id=case.prompt_id,
        vars=_shown_vars(case.vars) if case.vars else EMPTY,
        finish_reason=result.finish_reason,
        sample=trial.sample,
        timestamp=result.timestamp,
        status=result.status,
        score=result.score,
        threshold=trial.threshold,
        output=result.output,
        input=[_message_row(message) for message in result.input],
        scores=_score_rows(result.scores, above),
        error=None if error is None else FailureRow(error.code, error.message, error.retryable, stops),
        duration_ms=int(result.duration_ms * 1000) / 1000,
        token_usage=result.token_usage,
        cost_usd=result.cost_usd,
        attempts=result.attempts,
        metadata={**case.metadata, **result.metadata} or EMPTY,
        case_sha256=case.sha256,
        key=trial.key,
        tags=case.tags,
        judge_cost_usd=result.judge_cost_usd,
        repeat=trial.repeat if several else 1,
        aggregate=trial.aggregate if several else None,
        conversation_id=case.conversation_id or None,
        turns=[_turn_row(answer) for answer in result.turns] if result.turns else (),
        retries=result.retries,
        judge_token_usage=result.judge_token_usage,
        reused=result.reused,
        alpha=trial.alpha,
        stopped=result.stopped,
        expected_output=(reference_text(expected) or None) if expected else None,
        cluster_key=None if case.cluster is None else case.cluster_key or "",
        cluster=case.cluster,
        variant=None if trial.variant is None else trial.variant.name,
        position=case.position,
        notes=result.notes,
        context=context_json(result.context) or (),
        response_metadata=result.response_metadata or EMPTY,
        thoughts=result.thoughts or "",
        time_to_first_token_ms=result.time_to_first_token_ms,
        user_done=result.user_done,
        user_cost_usd=result.user_cost_usd,
        user_token_usage=result.user_token_usage,
        **(asdict(result.stored) if result.stored is not None else {}),
    )


def _turn_row(answer: TargetResponse) -> TurnRow:
    return TurnRow(
        answer.output,
        None if answer.duration_ms is None else int(answer.duration_ms * 1000) / 1000,
        answer.token_usage,
        answer.cost_usd,
        [_message_row(message) for message in answer.messages] or (),
        context_json(answer.context) or (),
        answer.metadata or EMPTY,
        answer.thoughts or "",
        answer.finish_reason or None,
        answer.time_to_first_token_ms,
    )


def _score_rows(scores: Sequence[Score], above: str) -> list[ScoreRow]:
    # the hottest loop of a run: attributes are read once, and unnecessary calls are avoided
    rows: list[ScoreRow] = []
    for score in scores:
        entry, grade, span = score.entry, score.grade, score.entry.span
        settings = entry.settings
        row = ScoreRow(
            name=entry.name,
            type=entry.shown_type if settings.negate else entry.type,
            score=grade.score,
            passed=grade.passed,
            weight=settings.weight,
            required=settings.required,
            assertions=grade.checks,
            reason=grade.reason,
            details=grade.details or EMPTY,
            duration_ms=int(score.duration_ms * 1000) / 1000,  # whole microseconds
            source=f"{span.file.removeprefix(above)}:{span.line}" if span else None,
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
    """Return the variables, with long ones cut to their beginning plus their length."""
    shown: dict[str, Any] = {}
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        shown[name] = cut(text, LONGEST_VARIABLE) if len(text) > LONGEST_VARIABLE else value
    return shown
