"""A call to a target that costs next to nothing, to see whether it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from agentv.app.wiring import Connections
from agentv.engine.limits import in_time
from agentv.foreign.guard import attempt
from agentv.foreign.processes import kill_all
from agentv.model.configured import CheckOutcome
from agentv.model.message import Message
from agentv.model.redaction import Redactor
from agentv.model.response import CallFailure, Failure, TargetResponse
from agentv.model.suite import TargetSpec
from agentv.ports import Target, TargetRequest

QUESTION = "Reply with OK."
FEWEST_TOKENS = 16
"""What a call may answer with: the fewest that every model API takes."""

NOTHING_TO_CALL = frozenset({"echo", "mock", "replay"})
"""Providers that answer by themselves."""

_CUT_SHORT = "max_tokens or model output limit"
"""How OpenAI refuses a reasoning model that would have said more: it has been reached, and the key is right."""


def check_all(specs: Sequence[TargetSpec], env: Mapping[str, str], timeout_s: float) -> list[CheckOutcome]:
    """What a call to each comes to, in their order; they are called at once."""
    return asyncio.run(_check_all(specs, env, timeout_s))


async def _check_all(specs: Sequence[TargetSpec], env: Mapping[str, str], timeout_s: float) -> list[CheckOutcome]:
    connections = Connections()
    try:
        return await asyncio.gather(*(_check(connections, spec, env, timeout_s) for spec in specs))
    finally:
        await connections.close()
        kill_all()


async def _check(connections: Connections, spec: TargetSpec, env: Mapping[str, str], timeout_s: float) -> CheckOutcome:
    if spec.provider in NOTHING_TO_CALL:
        return CheckOutcome("untried", message="it answers by itself")
    target = connections.target(frugal(spec))
    began = time.monotonic()
    answer = await _asked(target, spec, env, timeout_s)
    took = (time.monotonic() - began) * 1000
    if isinstance(answer, TargetResponse) or _CUT_SHORT in answer.message:
        return CheckOutcome("ok", took)
    message = Redactor(spec.secrets).redact(answer.message)
    return CheckOutcome("failed", took, answer.code, message, _fix(answer, spec))


async def _asked(
    target: Target, spec: TargetSpec, env: Mapping[str, str], timeout_s: float
) -> TargetResponse | Failure:
    what = f"target '{spec.name}'"
    messages = (Message("user", QUESTION),)
    request = TargetRequest("check", QUESTION, messages, timeout_s=timeout_s, env={**env, **spec.env})
    given = attempt(target.answer, request, "target-raised", what)
    if isinstance(given, TargetResponse | Failure):
        return given
    return await in_time(given, timeout_s, code="target-raised", what=what, missing="answer")


def frugal(spec: TargetSpec) -> TargetSpec:
    """The target, told to say next to nothing where its settings can tell it."""
    settings: Any = spec.settings
    if "max_tokens" in {one.name for one in fields(settings)}:
        return replace(spec, settings=replace(settings, max_tokens=FEWEST_TOKENS))
    return spec


def _fix(failure: Failure, spec: TargetSpec) -> str | None:
    """What a person can do about it; None where the message says it all."""
    status = failure.status if isinstance(failure, CallFailure) else None
    key = next((one.found or one.names[0] for one in spec.variables if one.secret), None)
    if status in (401, 403):
        return f"the key was refused: look at {key}, and at whose server base_url is" if key else "the key was refused"
    return _FIXES_OF_STATUS.get(status or 0) or _FIXES.get(failure.code)


_FIXES_OF_STATUS: Mapping[int, str] = {
    404: "there is no such model or path: look at 'model' and 'base_url'",
    429: "the rate limit is reached, or the account has no credit",
}
_FIXES: Mapping[str, str] = {
    "connection": "is the server running, and is 'base_url' right?",
    "timeout": "give it longer with --timeout SECONDS",
}
