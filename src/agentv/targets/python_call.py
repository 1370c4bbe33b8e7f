"""Calls of the functions behind `python` targets: what they get (SPEC section 12), and how they are recognized."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from agentv.model.run.trace_summary import usage_json
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.retrieved import context_json
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
    return _awaited(kind, value) if inspect.isawaitable(value) else _wire(kind, value)


async def _awaited(kind: Kind, value: Awaitable[Any]) -> tuple[Kind, Any]:
    return _wire(kind, await value)


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
    """How many arguments a function of promptfoo's interface takes by position; 0 where it is none.

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


def _wire(kind: Kind, value: Any) -> tuple[Kind, Any]:
    if not isinstance(value, TargetResponse):
        return kind, value
    from agentv.targets.http.answers import checked

    response = checked(value)
    if isinstance(response, Failure):
        raise ForeignError(response)
    usage = response.token_usage
    return "response", {
        "output": response.output,
        "messages": [message.as_json() for message in response.messages],
        "token_usage": usage_json(usage),
        "cost_usd": response.cost_usd,
        "duration_ms": response.duration_ms,
        "finish_reason": response.finish_reason,
        "metadata": response.metadata,
        "context": context_json(response.context),
    }
