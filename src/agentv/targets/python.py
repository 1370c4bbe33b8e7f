"""The `python` target, which calls a user's function in a worker, and functions passed to `evaluate` directly."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from msgspec import structs

from agentv.model.suite.suite import TargetSpec
from agentv.model.suite.tools import mcp_config
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.values import EMPTY, Json
from agentv.ports import CodeCall, Executor, Raised, Target, TargetRequest
from agentv.registry.extensions import known as known_names
from agentv.registry.extensions import lacking, loaded, registered
from agentv.registry.fields import Doc, FunctionRef, Issue, Text
from agentv.registry.types import ProviderSettings
from agentv.targets.http.answers import error_in, from_object, from_text, parsed
from agentv.targets.promptfoo import context_of, from_provider, options_of, prompt_of
from agentv.targets.python_call import Kind, answer_in, called, from_wire, with_trace
from agentv.user_code.guard import ForeignError, foreign_code

_WANTED = "text, a mapping with 'output', a TargetResponse, or what an agent framework returns"


@dataclass(frozen=True, slots=True)
class Python(ProviderSettings):
    """Calls a Python function, sync or async."""

    example: ClassVar[str | None] = "agent.py:answer"
    short: ClassVar[str | None] = "function"

    function: Annotated[
        FunctionRef, Doc("`file.py:name` or `package.module:name`; receives the parameters that it names")
    ]
    config: Annotated[
        Mapping[str, Json],
        Doc("passed to the function as `config`, and as `options['config']` to promptfoo's call_api"),
    ] = field(default=EMPTY)

    trace: Annotated[
        Text | None,
        Doc("`otel`: the spans that its framework records by OpenTelemetry in a call are the trace of the trial"),
    ] = None

    def validate(self) -> Iterable[Issue]:
        """Report an unknown `trace`, or one whose library is not installed."""
        if self.trace is None:
            return
        if self.trace not in registered("RECORDINGS"):
            needs = lacking("RECORDINGS", self.trace)
            known = ", ".join(f"'{name}'" for name in known_names("RECORDINGS"))
            yield Issue(("trace",), f"'trace' {needs}" if needs else f"'trace' must be {known}, found '{self.trace}'")
        else:
            yield from loaded("RECORDINGS", self.trace).problems()

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target that calls the function in a worker."""
        return _InWorker(self, spec, executor)


@dataclass(frozen=True, slots=True)
class GivenFunction(ProviderSettings):
    """Calls a function that was passed to `evaluate`, in the caller's process."""

    function: Callable[..., Any]

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target that calls the function."""
        return _InProcess(self.function, spec.name, executor)


class _InWorker:
    """A target that calls a function of a file or module in a worker."""

    def __init__(self, settings: Python, spec: TargetSpec, executor: Executor) -> None:
        self._settings = settings
        self._spec = spec
        self._executor = executor

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        settings, ref = self._settings, self._settings.function
        call = CodeCall(
            "tested",
            "agentv.targets.python_call:answer",
            {**_payload(request, self._spec.name, settings.config), "trace": settings.trace, "name": ref.name},
            code="target-raised",
            what=ref.name,
            function=ref.name,
            file=ref.path,
            module=ref.module,
            env=request.env or None,
            processes=self._spec.workers or 1,
        )
        found = await self._executor.python(call)
        if isinstance(found, Raised):
            if found.code == "bad-result":
                return Failure("bad-answer", f"{ref.name} must return {_WANTED}, not {found.cause}")
            return CallFailure(found.code, found.message, attempts=found.attempts)
        answer = _read(ref.name, *found.value)
        if isinstance(answer, Failure):
            return answer
        took_ms = found.duration_ms if answer.duration_ms is None else answer.duration_ms
        return structs.replace(answer, duration_ms=took_ms, attempts=found.attempts)

    async def close(self) -> None:
        """Do nothing: the worker ends with the run."""


class _InProcess:
    """A target that calls the caller's function: on a thread, or on the run's event loop if it is `async def`."""

    def __init__(self, function: Callable[..., Any], name: str, executor: Executor) -> None:
        self._function = function
        self._name = name
        self._executor = executor
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  # the method itself is inspected
        )

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        payload = _payload(request, self._name, EMPTY)

        def call() -> tuple[Kind, Any]:
            with foreign_code("target-raised", self._name):
                return called(self._function, payload)

        try:
            kind, value = call() if self._is_async else await self._executor.call(call)
            if inspect.isawaitable(value):
                with foreign_code("target-raised", self._name):
                    value = await value
            found = answer_in(kind, value, payload)
            return _read(self._name, kind, value) if found is None else found
        except ForeignError as error:
            return error.failure
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Failure("target-raised", f"{self._name} raised CancelledError")

    async def close(self) -> None:
        """Do nothing: the function belongs to the caller."""


def _payload(request: TargetRequest, name: str, config: Mapping[str, Json]) -> dict[str, Any]:
    """Return the values that a function can take as parameters, and the arguments of promptfoo's interface."""
    return {
        "prompt": request.prompt,
        "messages": [message.as_json() for message in request.messages],
        "vars": request.vars,
        "metadata": request.metadata,
        "case_id": request.case_id,
        "workspace_path": request.workspace_path,
        "config": config,
        "mcp_config": mcp_config(request.mcp_servers),
        "provider_prompt": prompt_of(request),
        "options": options_of(name, config),
        "context": context_of(request),
    }


def _read(name: str, kind: Kind, value: Any) -> TargetResponse | Failure:
    """Return the answer in a function's return value."""
    if kind == "response":
        return from_wire(value)
    if kind == "recorded":
        (inner, returned), trace = value
        return with_trace(_read(name, inner, returned), trace)
    if kind == "provider":
        return from_provider(value)
    if isinstance(value, str):
        return error_in(parsed(value) if value.startswith("{") else value) or from_text(value)
    if value is None or isinstance(value, Mapping):
        return TargetResponse(None) if value is None else from_object(value)
    return Failure("bad-answer", f"{name} must return {_WANTED}, not {type(value).__name__}")
