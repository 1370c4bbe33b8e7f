"""A call to a target that costs next to nothing, to see whether it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from msgspec import structs

from agentv.app.wiring import Connections
from agentv.authoring.source.masking import environment_secrets
from agentv.authoring.targets.target import how_to_set
from agentv.engine.executor import LocalExecutor
from agentv.engine.trial import no_answer, shows_text
from agentv.model.redaction import Redactor
from agentv.model.run.trial import Trial
from agentv.model.suite.configured import MOST_TURNS, AgentCheck, CheckOutcome
from agentv.model.suite.suite import Case, Retry, Suite, TargetSpec
from agentv.model.suite.workspace import WorkLimits, WorkspaceSpec
from agentv.model.values.message import Message
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.ports import Target, TargetRequest
from agentv.targets.http.failures import carries_key
from agentv.user_code.deadline import Deadline, in_time
from agentv.user_code.guard import attempt
from agentv.user_code.processes import kill_all

QUESTION = "Reply with OK."
FEWEST_TOKENS = 16
"""What a call may answer with: the fewest that every model API takes."""

_CUT_SHORT = "max_tokens or model output limit"
"""How OpenAI refuses a reasoning model that would have said more: it has been reached, and the key is right."""


@dataclass(frozen=True, slots=True)
class CheckedTarget:
    """A target to call; `key` is the name of the variable that its key is out of."""

    spec: TargetSpec
    key: str | None = None


def check_all(called: Sequence[CheckedTarget], env: Mapping[str, str], timeout_s: float) -> list[CheckOutcome]:
    """The result of one call to each target, in order; all are called concurrently.

    A target's own `timeout_s` is its limit where that is shorter.
    """
    return asyncio.run(_check_all(called, env, timeout_s))


async def _check_all(called: Sequence[CheckedTarget], env: Mapping[str, str], timeout_s: float) -> list[CheckOutcome]:
    connections = Connections()
    try:
        return await asyncio.gather(*(_check(connections, one, env, _limit(one, timeout_s)) for one in called))
    finally:
        await connections.close()
        kill_all()


def _limit(called: CheckedTarget, timeout_s: float) -> float:
    own = called.spec.timeout_s
    return timeout_s if own is None else min(own, timeout_s)


async def _check(
    connections: Connections, called: CheckedTarget, env: Mapping[str, str], timeout_s: float
) -> CheckOutcome:
    spec = called.spec
    if spec.calls == "nothing":
        return CheckOutcome("untried", message="it answers without a server")
    if spec.is_agent:
        return await _turn(connections, called, env, timeout_s)
    target = connections.target(with_fewest_tokens(spec))
    began = time.monotonic()
    answer = await _call_target(target, spec, env, timeout_s)
    took = (time.monotonic() - began) * 1000
    if isinstance(answer, TargetResponse) and not (
        spec.allow_empty or answer.messages or shows_text(answer.output or "")
    ):
        answer = no_answer(answer)
    is_cut = hasattr(spec.settings, "max_tokens")  # to fewer tokens than it thinks with
    if isinstance(answer, TargetResponse) or _CUT_SHORT in answer.message or (is_cut and answer.code == "empty-output"):
        return CheckOutcome("ok", took)
    return _failed(answer, took, called, env)


def _failed(
    why: Failure, took: float, called: CheckedTarget, env: Mapping[str, str], agent: AgentCheck | None = None
) -> CheckOutcome:
    secrets = {*called.spec.secrets, *environment_secrets({**env, **called.spec.env})}
    return CheckOutcome("failed", took, why.code, Redactor(secrets).redact(why.message), _fix(why, called), agent)


async def _turn(
    connections: Connections, called: CheckedTarget, env: Mapping[str, str], timeout_s: float
) -> CheckOutcome:
    """One turn of an agent, as in a run: in an empty workspace, confined, its model calls through the gateway."""
    spec = structs.replace(called.spec, retry=Retry(max_retries=0))
    case = Case(
        "check",
        (Message("user", QUESTION),),
        (),
        show_only=True,
        workspace=WorkspaceSpec(keep="none"),
        limits=WorkLimits(max_turns=MOST_TURNS),
    )
    suite = Suite("check", (case,), targets=(spec,), env=env)
    result = await LocalExecutor(connections).run(Trial(suite, case, spec, 0.0, timeout_s, key="check"))
    work, tokens, agent = result.work, result.token_usage, AgentCheck()
    if work is not None and work.trace is not None:
        trace, program = work.trace, getattr(spec.settings, "program", None)
        agent = AgentCheck(
            trace.agent,
            trace.agent_version,
            program.tested if program is not None else (),
            program is not None and program.untested(trace.agent_version),
            work.sandbox,
            spec.upstream.protocol if spec.upstream is not None and trace.is_counted else None,
            trace.turns or None,
            tokens.total if tokens is not None else None,
            result.cost_usd,
        )
    if result.error is None:
        return CheckOutcome("ok", result.duration_ms, agent=agent)
    return _failed(result.error, result.duration_ms, called, env, agent)


async def _call_target(
    target: Target, spec: TargetSpec, env: Mapping[str, str], timeout_s: float
) -> TargetResponse | Failure:
    what = f"target '{spec.name}'"
    messages = (Message("user", QUESTION),)
    request = TargetRequest("check", QUESTION, messages, timeout_s=timeout_s, env={**env, **spec.env})
    given = attempt(target.answer, request, "target-raised", what)
    if isinstance(given, TargetResponse | Failure):
        return given
    return await in_time(given, Deadline(timeout_s), code="target-raised", what=what, missing="answer")


def with_fewest_tokens(spec: TargetSpec) -> TargetSpec:
    """The target with settings for the shortest possible answer, and no retries."""
    settings: Any = spec.settings
    known = {one.name for one in fields(settings)}
    fewest = {"max_tokens": FEWEST_TOKENS, "thinking": None}
    cheapest = replace(settings, **{name: fewest[name] for name in fewest.keys() & known})
    return structs.replace(spec, settings=cheapest, retry=Retry(max_retries=0))


def _fix(failure: Failure, called: CheckedTarget) -> str | None:
    """What a person can do about it; None where the message says it all."""
    status = failure.status if isinstance(failure, CallFailure) else None
    if status in (401, 403):
        return _of_keys(called)
    return _FIXES_OF_STATUS.get(status or 0) or _FIXES.get(failure.code)


def _of_keys(called: CheckedTarget) -> str:
    """What to do where a server does not let one in: with a key, without one, or with what cannot be known here."""
    settings: Any = called.spec.settings
    if not hasattr(settings, "api_key"):
        return "it requires other 'headers'"
    if called.key or settings.api_key:
        where = called.key or "the target's api_key"
    elif carries_key(getattr(settings, "headers", ())):
        where = "the target's headers"
    elif getattr(settings, "finds_keys", False):
        where = "the variable of the model's provider"
    else:
        variable = next((one for one in called.spec.variables if one.setting == "api_key"), None)
        return f"no key was sent: {how_to_set(variable) if variable else 'set one'}, or set 'api_key' on the target"
    return f"the key was refused: check {where}, and that 'base_url' is the key's server"


_FIXES_OF_STATUS: Mapping[int, str] = {
    404: "no such model or path: check 'model' and 'base_url'",
    429: "the rate limit is reached, or the account has no credit",
}
_FIXES: Mapping[str, str] = {
    "connection": "is the server running, and is 'base_url' right?",
    "unset-environment": "set it in the environment or in a .env file",
    "timeout": "allow more time with --timeout SECONDS, or with the target's 'timeout_s' if that is shorter",
    "agent-api": "does the agent reach its model? check 'model', 'base_url' and 'api_key'",
    "cannot-start": "does the program start in a terminal? check 'command'",
    "agent-stopped": "does it start in a terminal? the message ends with what it wrote last",
    "agent-limit": "it calls its model again and again: try the prompt in a terminal",
    "empty-output": "it ended without an answer: check its settings, and whether it is signed in",
}
