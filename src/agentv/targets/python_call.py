"""Calls of the functions of `python` targets: their arguments (SPEC section 12) and return values."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from msgspec.structs import replace

from agentv.model.values import trace_document
from agentv.model.values.message import messages_from_json
from agentv.model.values.response import MEASURED, CallFailure, Failure, TargetResponse
from agentv.model.values.retrieved import context_json, read_context
from agentv.model.values.trace import MessageStep, Trace
from agentv.model.values.trace_summary import usage_json
from agentv.model.values.usage import TokenUsage
from agentv.registry.extensions import loaded, registered
from agentv.user_code.functions import CallPlan, plan_call
from agentv.user_code.guard import ForeignError, foreign_code

OFFERED = ("prompt", "messages", "vars", "metadata", "case_id", "workspace_path", "config", "mcp_config")
"""Names of the parameters that a function can declare."""

PROVIDER = ("provider_prompt", "options", "context")
"""Keys of the payload that are passed to promptfoo's `call_api`, by position."""

Kind = Literal["plain", "provider", "response", "recorded"]


def answer(function: Callable[..., Any], payload: Mapping[str, Any]) -> Any:
    """Call a function in a worker and return `(kind, plain value)`, or an awaitable of it."""
    if payload["trace"]:
        return _recorded(function, payload, loaded("RECORDINGS", payload["trace"])())
    kind, value = called(function, payload)
    return _awaited(kind, value, payload) if inspect.isawaitable(value) else _wire(kind, value, payload)


async def _awaited(kind: Kind, value: Awaitable[Any], payload: Mapping[str, Any]) -> tuple[Kind, Any]:
    return _wire(kind, await value, payload)


def _recorded(function: Callable[..., Any], payload: Mapping[str, Any], recording: Any) -> Any:
    """Call a function as `answer` does, and return the trace of the call too, even if the function raises."""
    try:
        with foreign_code("target-raised", payload["name"]), recording:
            kind, value = called(function, payload)
    except ForeignError as error:
        return _failed(error.failure, recording)
    if inspect.isawaitable(value):
        return _recorded_later(kind, value, payload, recording)
    return "recorded", (_wire(kind, value, payload), trace_document.document(recording.trace()))


async def _recorded_later(kind: Kind, value: Awaitable[Any], payload: Mapping[str, Any], recording: Any) -> Any:
    try:
        with foreign_code("target-raised", payload["name"]), recording:
            found = await value
    except ForeignError as error:
        return _failed(error.failure, recording)
    return "recorded", (_wire(kind, found, payload), trace_document.document(recording.trace()))


def _failed(failure: Failure, recording: Any) -> tuple[Kind, Any]:
    found = CallFailure(failure.code, failure.message, response=TargetResponse(None, trace=recording.trace()))
    return "response", _response_wire(found)


def called(function: Callable[..., Any], payload: Mapping[str, Any]) -> tuple[Kind, Any]:
    """Call a function with the parameters that it declares.

    Returns:
        "provider" if it has promptfoo's interface or else "plain", and the return value.

    Raises:
        ForeignError: it requires a parameter that is not in OFFERED.
    """
    taken = _taken_by_provider(function)
    if taken:
        return "provider", function(*(payload[name] for name in PROVIDER[:taken]))
    return "plain", _planned(function).bind(function, payload)()


@lru_cache(maxsize=1024)
def _planned(function: Callable[..., Any]) -> CallPlan:
    return plan_call(function, OFFERED, "prompt")


@lru_cache(maxsize=1024)
def _taken_by_provider(function: Callable[..., Any]) -> int:
    """Number of positional arguments to pass to a function with promptfoo's interface; 0 for other functions.

    A function has that interface if it is named `call_api`, or takes `options` and `context` after another parameter.
    """
    try:
        given = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return 0
    front = [one for one in given if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    named = [one.name for one in front[1:3]]
    if getattr(function, "__name__", "") != "call_api" and named != ["options", "context"]:
        return 0
    return len(PROVIDER) if any(one.kind is one.VAR_POSITIONAL for one in given) else min(len(front), len(PROVIDER))


def answer_in(kind: Kind, value: Any, payload: Mapping[str, Any]) -> TargetResponse | Failure | None:
    """Return the answer in a TargetResponse or in an object that an extension can read; None for plain data."""
    if value is None or isinstance(value, str):
        return None
    if isinstance(value, TargetResponse):
        from agentv.targets.http.answers import checked

        return checked(value)
    if kind == "provider" or (isinstance(value, Mapping) and not value.keys().isdisjoint(("output", "text", "error"))):
        return None
    asked = payload["messages"][-1]["content"] if payload["messages"] else ""
    readers = (loaded("RETURNS", name) for name in registered("RETURNS"))
    return next((found for read in readers if (found := read(value, asked)) is not None), None)


def _wire(kind: Kind, value: Any, payload: Mapping[str, Any]) -> tuple[Kind, Any]:
    found = answer_in(kind, value, payload)
    if found is None:
        return kind, value
    if isinstance(found, Failure) and not (isinstance(found, CallFailure) and found.response is not None):
        raise ForeignError(found)
    return "response", _response_wire(found)


def _response_wire(found: TargetResponse | Failure) -> dict[str, Any]:
    failure = (found.code, found.message) if isinstance(found, Failure) else None
    answer = found.response if isinstance(found, CallFailure) else found
    assert isinstance(answer, TargetResponse)  # noqa: S101  # failures without a response raise in `_wire`
    return {
        "output": answer.output,
        "messages": [message.as_json() for message in answer.messages],
        "token_usage": usage_json(answer.token_usage),
        **{name: getattr(answer, name) for name in MEASURED},
        "metadata": answer.metadata,
        "context": context_json(answer.context),
        "trace": None if answer.trace is None else trace_document.document(answer.trace),
        "failure": failure,
    }


def with_trace(answer: TargetResponse | Failure, data: bytes) -> TargetResponse | Failure:
    """Return an answer with the trace of its call. If the trace ended in an error, so does the call."""
    trace = trace_document.parse(data)
    if isinstance(trace, Failure):
        return trace
    if isinstance(answer, Failure):
        return CallFailure(answer.code, answer.message, response=TargetResponse(None, trace=trace))
    if trace.error:
        return CallFailure("target-error", trace.unanswered, response=TargetResponse(None, trace=trace))
    if answer.trace is not None and _has_messages(answer.trace) and not _has_messages(trace):
        return answer  # the framework recorded spans without message content
    return replace(answer, trace=trace)


def _has_messages(trace: Trace) -> bool:
    return any(isinstance(step, MessageStep) for step in trace.steps)


def from_wire(row: Mapping[str, Any]) -> TargetResponse | Failure:
    """Return the answer in a row that `answer` sent from a worker."""
    usage, trace = row["token_usage"], None if row["trace"] is None else trace_document.parse(row["trace"])
    if isinstance(trace, Failure):
        return trace
    facts = {key: value for key, value in row.items() if key != "failure"} | {
        "messages": messages_from_json(row["messages"]),
        "context": read_context(row["context"]),
        "token_usage": None if usage is None else TokenUsage.from_json(usage),
        "trace": trace,
    }
    answer = TargetResponse(**facts)
    return answer if row["failure"] is None else CallFailure(row["failure"][0], row["failure"][1], response=answer)
