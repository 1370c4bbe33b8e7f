"""The full data of a trial, which is loaded when its page is opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from agentv.extensions.view.pages.entries import from_root, state, tokens_json
from agentv.model.run.grade import Check
from agentv.model.run.trial import Score, TrialResult
from agentv.model.values.message import Message
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.reports.run.trial_view import cut_words, needed

KEPT = 1_000_000
"""Maximum number of characters of one text in a page. The run's rows have the complete text."""

CUT = "[…]"
"""Marks an omission in an excerpt."""


def trial_data(result: TrialResult, root: str) -> dict[str, Any]:
    """The trial as data of the page, without empty values.

    Args:
        result: the trial.
        root: directory to which shown paths are relative, as in `HtmlReport`.
    """
    trial, case = result.trial, result.trial.case
    # the page shows these in full, so evidence need not repeat them
    texts = (result.output, *(message.text for message in result.input))
    shown = tuple(text.strip() for text in texts if text)
    values = {
        "path": from_root(root, trial.suite.path),
        "line": case.span.line if case.span else None,
        "description": case.description,
        "criteria": case.criteria,
        "vars": dict(case.vars),
        "expected": _messages(case.expected_output),
        "conversation": case.conversation_id,
        "aggregate": trial.aggregate if trial.repeat > 1 else None,
        "metadata": {**case.metadata, **result.metadata},
        "sha256": case.sha256,
        "key": trial.key,
        "input": _messages(result.input),
        "output": _shortened(result.output),
        "thoughts": _shortened(result.thoughts.strip()),
        "messages": _messages(result.messages),
        "turns": [_turn(one) for one in result.turns],
        "checks": [_grade(score, root, shown, result.output or "") for score in result.scores],
        "error": _failure(result.error),
        "retries": [{**asdict(one), "message": _shortened(one.message)} for one in result.retries],
        "timestamp": result.timestamp,
        "attempts": result.attempts if result.attempts > 1 else None,
        "tokens": _usage(result.token_usage),
        "judge_tokens": _usage(result.judge_token_usage),
        "cost_usd": result.cost_usd,
        "judge_cost_usd": result.judge_cost_usd,
        "user_cost_usd": result.user_cost_usd,
        "user_done": result.user_done,
        "reused": result.reused,
        "notes": [*result.notes, *([cut] if (cut := cut_words(result)) else [])],
        "finish_reason": result.finish_reason,
        "time_to_first_token_ms": result.time_to_first_token_ms,
    }
    return _without_empty(values)


def _new_evidence(check: Check, shown: Sequence[str]) -> str | None:
    """The evidence of a check, or None if it only repeats a shown text, or the beginning and end of one."""
    if check.evidence is None:
        return None
    start, cut, end = (part.strip() for part in check.evidence.partition(CUT))
    if start and cut and end:
        repeated = any(text.startswith(start) and text.endswith(end) for text in shown)
    else:
        repeated = start in shown
    return None if repeated else check.evidence


def _grade(score: Score, root: str, shown: Sequence[str], output: str) -> dict[str, Any]:
    entry, grade = score.entry, score.grade
    grade_json = {
        "name": _shortened(entry.name),
        "type": entry.shown_type,
        "state": state(score),
        "score": None if grade.error else grade.score,
        "needs": needed(grade) if grade.error is None else None,
        "weight": entry.settings.weight if entry.settings.weight != 1 else None,
        "required": entry.settings.required,
        "checks": [
            _without_empty(
                {
                    "text": _shortened(one.text),
                    "passed": int(one.passed),
                    "evidence": _shortened(_new_evidence(one, shown)),
                    "at": [_in_units(output, span) for span in one.spans if span[1] <= min(KEPT, len(output))],
                }
            )
            for one in grade.checks
        ],
        "reason": _shortened(grade.reason),
        "error": _failure(grade.error),
        "details": grade.details,
        "duration_ms": round(score.duration_ms, 1) if score.duration_ms >= 1 else None,
        "source": f"{from_root(root, entry.span.file)}:{entry.span.line}" if entry.span else None,
    }
    return _without_empty(grade_json)


def _in_units(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """A span in UTF-16 code units, as used by JavaScript."""
    if text.isascii():
        return span
    begin, end = (len(text[:at].encode("utf-16-le", "surrogatepass")) // 2 for at in span)
    return begin, end


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [_message(one) for one in messages]


def _message(message: Message) -> dict[str, Any]:
    calls = [{**call.as_json(), "output": _shortened(call.output)} for call in message.tool_calls]
    return _without_empty(
        {"role": message.role, "name": message.name, "text": _shortened(message.text), "calls": calls}
    )


def _turn(answer: TargetResponse) -> dict[str, Any]:
    return _without_empty(
        {
            "output": _shortened(answer.output),
            "thoughts": _shortened(answer.thoughts.strip()),
            "messages": _messages(answer.messages),
            "tokens": _usage(answer.token_usage),
            "cost_usd": answer.cost_usd,
            "duration_ms": answer.duration_ms,
            "time_to_first_token_ms": answer.time_to_first_token_ms,
        }
    )


def _failure(failure: Failure | None) -> dict[str, Any] | None:
    return None if failure is None else {"code": failure.code, "message": _shortened(failure.message)}


def _usage(usage: TokenUsage | None) -> dict[str, int] | None:
    return None if usage is None else tokens_json(usage)


def _shortened(text: str | None) -> Any:
    """The text, or an object with its beginning and length if it is too long."""
    if text is None or len(text) <= KEPT:
        return text
    return {"cut": text[:KEPT], "length": len(text)}


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """The values that are not empty, None or False. Zeros are kept."""
    empty: tuple[Any, ...] = ("", [], {}, ())
    return {
        key: value for key, value in values.items() if value is not None and value is not False and value not in empty
    }
