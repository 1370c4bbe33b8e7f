"""`javascript`: a JavaScript or TypeScript file of the user's answers, in promptfoo's provider interface."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.values import EMPTY, Json
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Doc, Issue, JavaScriptSource
from agentv.registry.types import ProviderSettings
from agentv.targets.promptfoo.calls import JavaScriptProcesses, context_of, options_of, prompt_of
from agentv.targets.promptfoo.responses import from_provider


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
        """Code that is no file."""
        if self.function.path is None:
            yield Issue(("function",), "'function' must be the path of a .js, .mjs, .cjs, .ts or .mts file")

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target with a process of its own, which starts when it is first asked."""
        del executor
        return _JavaScript(self.function, options_of(spec.name, self.config))


class _JavaScript:
    def __init__(self, function: JavaScriptSource, options: Mapping[str, Json]) -> None:
        self._source = f"provider:{function.name or ''}:{function.path}"
        self._name = Path(function.path or "").name
        self._options = options
        self._processes = JavaScriptProcesses()

    def answer(self, request: TargetRequest) -> Awaitable[TargetResponse | Failure]:
        return self._ask(request)

    async def _ask(self, request: TargetRequest) -> TargetResponse | Failure:
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
        """End the processes."""
        await self._processes.close()
