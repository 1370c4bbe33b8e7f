"""`agentv targets`: configured targets, their keys, and test calls."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import replace

from agentv.app.registries import registries, sandboxes
from agentv.app.wiring import Connections
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.loading.inventory import Inventory, InventoryEntry, inventory
from agentv.authoring.source.masking import environment_secrets
from agentv.authoring.targets.target import how_to_set
from agentv.engine.executor import LocalExecutor
from agentv.engine.trial import no_answer, shows_text
from agentv.errors import Diagnostic, LoadError
from agentv.model.redaction import Redactor
from agentv.model.run.trial import Trial
from agentv.model.suite.configured import (
    MOST_TURNS,
    AgentCheck,
    CheckOutcome,
    KeyVariables,
    ListedProvider,
    ListedTarget,
    TargetsListing,
)
from agentv.model.suite.suite import Case, Retry, Suite, TargetSpec, Variable
from agentv.model.suite.workspace import WorkLimits, WorkspaceSpec
from agentv.model.values.message import Message
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.ports import Target, TargetRequest
from agentv.registry.extensions import PORTS, registered
from agentv.registry.fields import options_of
from agentv.registry.types import Provider, summary_of
from agentv.targets.http.failures import carries_key
from agentv.user_code.deadline import Deadline, in_time
from agentv.user_code.guard import attempt
from agentv.user_code.processes import kill_all

_EXTRA = "missing-extra"


class TargetsRequest(Struct, frozen=True):
    """Options of `agentv targets`.

    Attributes:
        names: targets; empty: all configured ones.
        check: call each target.
        timeout_s: time limit of a call, in seconds.
    """

    names: tuple[str, ...]
    check: bool
    timeout_s: float
    process_env: Mapping[str, str]
    env_file: str | None = None


class TargetsFound(Struct, frozen=True):
    """The listing, and warnings about the files that it was read from."""

    listing: TargetsListing
    diagnostics: tuple[Diagnostic, ...]


def list_targets(wanted: TargetsRequest, announce: Callable[[int, tuple[str, ...]], None]) -> TargetsFound:
    """List the targets, with the results of test calls if requested.

    Args:
        wanted: the options.
        announce: called before the test calls, with the number of models and the names of the agents to call.

    Raises:
        LoadError: a file is invalid, or a name is not a target.
    """
    request = LoadRequest((), process_env=wanted.process_env, env_file=wanted.env_file, for_run=False)
    known = registries()
    found = inventory(str(Path.cwd()), wanted.names, request, known)
    if any(one.severity == "error" for one in found.diagnostics):
        raise LoadError(one for one in found.diagnostics if one.severity != "hint")
    targets = tuple(_listed(entry, found) for entry in found.entries)
    if wanted.check:
        targets = _checked(targets, found, wanted, announce)
    providers = [one for name in known.providers.names if (one := known.providers.find(name)) is not None]
    models = tuple(_provider(one, found.env) for one in providers if one.of_models)
    others = tuple(_provider(one, found.env) for one in providers if not one.of_models)
    warnings = tuple(one for one in found.diagnostics if one.severity == "warning")
    sandbox_lines: tuple[str, ...] = ()
    if wanted.check and "Sandboxes" in registered(PORTS):
        sandbox_lines = sandboxes().lines()
    return TargetsFound(TargetsListing(found.path, targets, models, others, sandbox_lines), warnings)


def _listed(entry: InventoryEntry, found: Inventory) -> ListedTarget:
    lacks = next((one for one in (*entry.problems, *entry.lacks) if one in entry.problems or one.code == _EXTRA), None)
    marks = [("default target", found.default_target), ("default judge", found.default_judge)]
    marks += [(f"judge of {one.name}", one.judge) for one in found.entries]
    # variables that are set, or that must be: not those that the author sets, nor optional ones
    keys = (
        KeyVariables(one.names, one.found, one.missing or one.found is not None)
        for one in (entry.spec.variables if entry.spec else ())
        if one.found or one.missing
    )
    secrets = shape_of(type(entry.spec.settings)).secrets if entry.spec else frozenset()
    return ListedTarget(
        name=entry.name,
        provider=entry.provider,
        model=entry.model,
        place=(entry.span.file, entry.span.line) if entry.span else None,
        marks=tuple(mark for mark, name in marks if name == entry.name),
        keys=(*keys, *entry.named),
        written=not entry.named and bool(secrets & entry.settings),
        finds_keys=entry.spec is not None and getattr(type(entry.spec.settings), "finds_keys", False),
        problem_code=lacks.code if lacks else None,
        problem=lacks.message if lacks else None,
        fix=lacks.hint if lacks else None,
    )


def _checked(
    targets: tuple[ListedTarget, ...],
    found: Inventory,
    request: TargetsRequest,
    announce: Callable[[int, tuple[str, ...]], None],
) -> tuple[ListedTarget, ...]:
    specs = [entry.spec if not entry.spec or not entry.spec.missing else None for entry in found.entries]
    keys = [next((key.found for key in target.keys if key.found), None) for target in targets]
    called = [CheckedTarget(spec, key) for spec, key in zip(specs, keys, strict=True) if spec]
    agents = tuple(one.spec.name for one in called if one.spec.is_agent)
    models = sum(not one.spec.is_agent and one.spec.calls != "nothing" for one in called)
    if models or agents:
        announce(models, agents)
    outcomes = iter(check_all(called, found.env, request.timeout_s))
    return tuple(
        replace(target, check=next(outcomes) if spec else _uncallable(target, entry))
        for target, spec, entry in zip(targets, specs, found.entries, strict=True)
    )


def _uncallable(target: ListedTarget, entry: InventoryEntry) -> CheckOutcome:
    """Return the outcome of a target that cannot be called."""
    if target.problem is not None:
        return CheckOutcome("failed", None, target.problem_code or _EXTRA, target.problem, target.fix)
    if entry.spec is not None:
        first = entry.spec.missing[0]
        return CheckOutcome("failed", None, "no-api-key", f"{first.names[0]} is not set", how_to_set(first))
    lacking = next((key for key in target.keys if key.found is None), KeyVariables(("a variable",)))
    name = lacking.names[0]
    return CheckOutcome("failed", None, "unset-environment", f"{name} is not set", how_to_set(Variable("", (name,))))


def _provider(provider: Provider, env: Mapping[str, str]) -> ListedProvider:
    facts = tuple(
        KeyVariables(one.names, next((name for name in one.names if env.get(name, "").strip()), None))
        for one in shape_of(provider.settings).from_environment.values()
        if one.required
    )
    extra = None
    if provider.of_models:  # dummy settings report how to install a missing library
        needed = {name: "x" for name, default in options_of(provider.settings).items() if default is NODEFAULT}
        issues = provider.settings(**needed).validate()
        extra = next((issue.hint for issue in issues if issue.code == _EXTRA), None)
    settings = provider.settings
    return ListedProvider(provider.name, summary_of(settings), provider.shown, facts, settings.finds_keys, extra)


QUESTION = "Reply with OK."
CHECK_TOKENS = 16
"""Maximum tokens of a test call's answer: the smallest limit that every model API accepts."""

_CUT_SHORT = "max_tokens or model output limit"
"""Part of OpenAI's error when a reasoning model reaches the token limit: the model is reachable and the key valid."""


class CheckedTarget(Struct, frozen=True):
    """A target to call; `key` is the name of the variable with its API key."""

    spec: TargetSpec
    key: str | None = None


def check_all(called: Sequence[CheckedTarget], env: Mapping[str, str], timeout_s: float) -> list[CheckOutcome]:
    """Call each target once, concurrently, and return the outcomes in order.

    The limit of a target is `timeout_s` or its own `timeout_s`, whichever is shorter.
    """

    async def outcomes() -> list[CheckOutcome]:
        connections = Connections()
        try:
            own = [one.spec.timeout_s for one in called]
            limits = [timeout_s if limit is None else min(limit, timeout_s) for limit in own]
            checks = (_check(connections, one, env, limit) for one, limit in zip(called, limits, strict=True))
            return await asyncio.gather(*checks)
        finally:
            await connections.close()
            kill_all()

    return asyncio.run(outcomes())


async def _check(
    connections: Connections, called: CheckedTarget, env: Mapping[str, str], timeout_s: float
) -> CheckOutcome:
    spec = called.spec
    if spec.calls == "nothing":
        return CheckOutcome("untried", message="it answers without a server")
    if spec.is_agent:
        return await _check_agent(connections, called, env, timeout_s)
    settings: Any = spec.settings
    known = {one.name for one in fields(settings)}
    minimal = {"max_tokens": CHECK_TOKENS, "thinking": None}
    cheapest = dataclasses.replace(settings, **{name: minimal[name] for name in minimal.keys() & known})
    target = connections.target(replace(spec, settings=cheapest, retry=Retry(max_retries=0)))
    began = time.monotonic()
    answer = await _call_target(target, spec, env, timeout_s)
    took = (time.monotonic() - began) * 1000
    if isinstance(answer, TargetResponse) and not (
        spec.allow_empty or answer.messages or shows_text(answer.output or "")
    ):
        answer = no_answer(answer)
    has_token_limit = hasattr(spec.settings, "max_tokens")  # the limit can be too small for a reasoning model
    if (
        isinstance(answer, TargetResponse)
        or _CUT_SHORT in answer.message
        or (has_token_limit and answer.code == "empty-output")
    ):
        return CheckOutcome("ok", took)
    return _failed(answer, took, called, env)


def _failed(
    why: Failure, took: float, called: CheckedTarget, env: Mapping[str, str], agent: AgentCheck | None = None
) -> CheckOutcome:
    secrets = {*called.spec.secrets, *environment_secrets({**env, **called.spec.env})}
    status = why.status if isinstance(why, CallFailure) else None
    if status in (401, 403):
        fix: str | None = _key_advice(called)
    else:
        fix = _STATUS_FIXES.get(status or 0) or _FIXES.get(why.code)
    return CheckOutcome("failed", took, why.code, Redactor(secrets).redact(why.message), fix, agent)


async def _check_agent(
    connections: Connections, called: CheckedTarget, env: Mapping[str, str], timeout_s: float
) -> CheckOutcome:
    """Run one turn of an agent as in a run: in an empty workspace, sandboxed, with model calls through the gateway."""
    spec = replace(called.spec, retry=Retry(max_retries=0))
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
            program is not None and bool(program.untested(trace.agent_version)),
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


def _key_advice(called: CheckedTarget) -> str:
    """Return what to do when a server answers 401 or 403."""
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


_STATUS_FIXES: Mapping[int, str] = {
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
