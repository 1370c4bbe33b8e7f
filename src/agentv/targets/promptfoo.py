"""promptfoo's provider interface: the arguments and results of a provider, and the `javascript` target."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec.structs import replace

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import STRUCTURED, Failure, TargetResponse
from agentv.model.values.values import EMPTY, Json
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Doc, Issue, JavaScriptSource
from agentv.registry.types import ProviderSettings
from agentv.targets.http.answers import from_object, from_text

if TYPE_CHECKING:
    from agentv.user_code.javascript.host import JavaScriptHost


def prompt_of(request: TargetRequest) -> str:
    """Return the prompt: the text of a single user message, or the messages as JSON, which providers parse."""
    lone = request.messages[0] if len(request.messages) == 1 else None
    if lone is not None and lone.role == "user" and isinstance(lone.as_json().get("content"), str):
        return request.prompt
    return json.dumps([message.as_json() for message in request.messages], ensure_ascii=False, default=str)


def options_of(name: str, config: Mapping[str, Json]) -> dict[str, Any]:
    """Return the provider's options: `id` and `label`, which are both the target's name, and `config`."""
    return {"id": name, "label": name, "config": config}


def context_of(request: TargetRequest) -> dict[str, Any]:
    """Return the context of the call: its variables, prompt, test and repeat index."""
    return {
        "vars": request.vars,
        "prompt": {"raw": request.prompt, "label": request.prompt_id or request.prompt},
        "test": {
            "vars": request.vars,
            "metadata": request.metadata,
            "description": request.case_id,
        },
        "testCaseId": request.case_id,
        "repeatIndex": request.sample - 1,
    }


PATIENCE_S = 10.0
"""Seconds that a file can block its process, for instance by imports, before its calls move to other processes."""

_CODES = {"assertion-raised": "target-raised", "assertion-crashed": "target-raised", "bad-result": "bad-answer"}


class JavaScriptProcesses:
    """The JavaScript processes of one target, one host per environment, started at the first call."""

    def __init__(self) -> None:
        self._hosts: dict[frozenset[tuple[str, str]], JavaScriptHost] = {}

    async def call(self, env: Mapping[str, str], source: str, payload: Mapping[str, Json]) -> Json | Failure:
        """Return the value of a call. It has no deadline of its own: the engine cancels it when its time is up.

        Args:
            env: environment of the process.
            source: the function, as for `JavaScriptHost.call`.
            payload: its arguments, as for `JavaScriptHost.call`.
        """
        key = frozenset(env.items())
        if key not in self._hosts:
            from agentv.user_code.javascript.host import JavaScriptHost

            self._hosts[key] = JavaScriptHost(env, patience_s=PATIENCE_S)
        found = await self._hosts[key].call(source, payload, math.inf)
        return Failure(_CODES.get(found.code, found.code), found.message) if isinstance(found, Failure) else found

    async def close(self) -> None:
        """End the processes."""
        for host in self._hosts.values():
            await host.close()


_RENAMED = {
    "tokenUsage": "token_usage",
    "cost": "cost_usd",
    "latencyMs": "duration_ms",
    "finishReason": "finish_reason",
}
"""promptfoo's key → agentv's key."""

_COUNTS = {
    "input": ("prompt", "prompt_tokens"),
    "output": ("completion", "completion_tokens"),
    "total": ("total", "total_tokens"),
    "cached": ("cached",),
}
"""agentv's token count → promptfoo's name, and OpenAI's, because many providers pass `usage` on unchanged."""


def from_provider(value: object) -> TargetResponse | Failure:
    """Return the answer in a provider's result, which is an object, text, or None for an empty answer."""
    if value is None:
        return TargetResponse(None)
    if isinstance(value, str):
        return from_text(value)
    if not isinstance(value, Mapping):
        return Failure("bad-answer", f"a provider must return an object with 'output', found {type(value).__name__}")
    row: dict[Any, Any] = {_RENAMED.get(key, key): one for key, one in value.items() if one is not None}
    usage = row.get("token_usage")
    if isinstance(usage, Mapping) and not usage.keys() & {"input", "output"}:
        row["token_usage"] = {ours: _count(usage, names) for ours, names in _COUNTS.items()}
    output = row.get("output", row.get("text"))
    if row.get("error") or output is None or isinstance(output, str):
        return from_object({**row, "output": output})
    try:  # written as JSON text; code graders get the parsed value
        text = json.dumps(output, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        return Failure("bad-answer", f"'output' cannot be written as JSON: {error}")
    found = from_object({**row, "output": text})
    return found if isinstance(found, Failure) else replace(found, metadata={**found.metadata, STRUCTURED: True})


def _count(usage: Mapping[str, Json], names: tuple[str, ...]) -> Json:
    """Return the first count with one of these names, rounded: JavaScript and estimates may return fractions."""
    found = next((usage[name] for name in names if usage.get(name) is not None), None)
    return round(found) if isinstance(found, float) and math.isfinite(found) else found


@dataclass(frozen=True, slots=True)
class JavaScript(ProviderSettings):
    """Calls a JavaScript or TypeScript file: a class or object with `callApi`, or a function."""

    example: ClassVar[str | None] = "provider.mjs"
    short: ClassVar[str | None] = "function"

    function: Annotated[
        JavaScriptSource, Doc("`provider.js`, or `provider.js:name` for another export than the default")
    ]
    config: Annotated[Mapping[str, Json], Doc("passed as `options.config`")] = field(default=EMPTY)

    def validate(self) -> Iterable[Issue]:
        """Report a `function` that is not a file."""
        if self.function.path is None:
            yield Issue(("function",), "'function' must be the path of a .js, .mjs, .cjs, .ts or .mts file")

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target with its own process, started at the first call."""
        del executor
        return _JavaScript(self.function, options_of(spec.name, self.config))


class _JavaScript:
    def __init__(self, function: JavaScriptSource, options: Mapping[str, Json]) -> None:
        self._source = f"provider:{function.name or ''}:{function.path}"
        self._name = Path(function.path or "").name
        self._options = options
        self._processes = JavaScriptProcesses()

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        payload: dict[str, Json] = {
            "prompt": prompt_of(request),
            "context": context_of(request),
            "options": self._options,
        }
        found = await self._processes.call(request.env, self._source, payload)
        if isinstance(found, Failure):
            return Failure(found.code, f"{self._name} {found.message}")
        return from_provider(found)

    async def close(self) -> None:
        await self._processes.close()
