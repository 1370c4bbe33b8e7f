"""Calls of the functions behind `python` targets: what they get (SPEC section 12), and how they are recognized."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from agentv.model.run.trace_summary import usage_json
from agentv.model.values import trace_document
from agentv.model.values.message import messages_from_json
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.retrieved import context_json, read_context
from agentv.model.values.usage import TokenUsage
from agentv.registry.extensions import loaded, registered
from agentv.user_code.functions.functions import CallPlan, plan_call
from agentv.user_code.functions.guard import ForeignError

OFFERED = ("prompt", "messages", "vars", "metadata", "case_id", "workspace_path", "config")
"""What a function may ask for by the name of a parameter."""

PROVIDER = ("provider_prompt", "options", "context")
"""What promptfoo's `call_api` gets, by position."""

Kind = Literal["plain", "provider", "response"]


def answer(function: Callable[..., Any], payload: Mapping[str, Any]) -> Any:
    """In a worker: what the function returns as `(kind, plain value)`, or an awaitable of it."""
    kind, value = called(function, payload)
    return _awaited(kind, value, payload) if inspect.isawaitable(value) else _wire(kind, value, payload)


async def _awaited(kind: Kind, value: Awaitable[Any], payload: Mapping[str, Any]) -> tuple[Kind, Any]:
    return _wire(kind, await value, payload)


def called(function: Callable[..., Any], payload: Mapping[str, Any]) -> tuple[Kind, Any]:
    """Call a function with what it asks for.

    Returns:
        Whether it has promptfoo's interface, and its value.

    Raises:
        ForeignError: it requires a parameter that is not offered.
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
    """Number of positional arguments that a function of promptfoo's interface takes; 0 for other functions.

    It is one if it is called `call_api`, or takes `options` and `context` after another parameter.
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
    """The answer in a TargetResponse, or in an object that an extension reads; None: it is plain data."""
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
    failure = None
    if isinstance(found, Failure):
        failure, found = found, found.response if isinstance(found, CallFailure) else None
        if found is None:
            raise ForeignError(failure)
    return "response", {
        "output": found.output,
        "messages": [message.as_json() for message in found.messages],
        "token_usage": usage_json(found.token_usage),
        "cost_usd": found.cost_usd,
        "duration_ms": found.duration_ms,
        "finish_reason": found.finish_reason,
        "metadata": found.metadata,
        "context": context_json(found.context),
        "trace": None if found.trace is None else trace_document.document(found.trace),
        "failure": None if failure is None else (failure.code, failure.message),
    }


def from_wire(row: Mapping[str, Any]) -> TargetResponse | Failure:
    """The answer that came from a worker."""
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
