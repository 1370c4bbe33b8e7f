"""`python`: a function of the user's answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import field
from functools import partial
from typing import Annotated, Any, ClassVar

from agentv.lazy_dataclass import dataclass
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.values import EMPTY, Json, own_copy
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Doc, FunctionRef
from agentv.registry.types import ProviderSettings
from agentv.targets.http.answers import checked, error_in, from_object, from_text, parsed
from agentv.targets.http.once import Once, timed
from agentv.targets.promptfoo.calls import context_of, options_of, prompt_of
from agentv.targets.promptfoo.responses import from_provider
from agentv.user_code.functions.functions import CallPlan, load_function, plan_call
from agentv.user_code.functions.guard import ForeignError, foreign_code


@dataclass(frozen=True, slots=True)
class Python(ProviderSettings):
    """Calls a Python function, sync or async."""

    short: ClassVar[str | None] = "function"

    function: Annotated[
        FunctionRef, Doc("`file.py:name` or `package.module:name`; receives the parameters that it names")
    ]
    config: Annotated[
        Mapping[str, Json],
        Doc("passed to the function as `config`, and as `options['config']` to promptfoo's call_api"),
    ] = field(default=EMPTY)

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that loads the function when it is first asked."""
        ref = self.function
        options = options_of(spec.name, self.config)
        found = _Found(ref.name, lambda: load_function(ref.name, path=ref.path, module=ref.module), options)
        return _Python(found, executor)


@dataclass(frozen=True, slots=True)
class GivenFunction(ProviderSettings):
    """Calls a function that the caller of `evaluate` hands over.

    Attributes:
        on_our_loop: it is awaited on the loop that the run itself is on, where the caller's sessions and locks belong.
    """

    function: Callable[..., Any]
    on_our_loop: bool = False

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that calls it."""
        found = _Found(spec.name, lambda: self.function, options_of(spec.name, EMPTY))
        return _Python(found, executor, on_our_loop=self.on_our_loop)


Offer = Callable[[TargetRequest, Mapping[str, Any]], Any]

OFFERED: Mapping[str, Offer] = {
    "prompt": lambda request, _: request.prompt,
    "messages": lambda request, _: own_copy([message.as_json() for message in request.messages]),
    "vars": lambda request, _: own_copy(request.vars),
    "metadata": lambda request, _: own_copy(request.metadata),
    "case_id": lambda request, _: request.case_id,
    "workspace_path": lambda request, _: request.workspace_path,
    "config": lambda _, options: own_copy(options["config"]),
}
"""What a function may ask for by the name of a parameter (SPEC section 12), out of a call and the target's options."""

PROVIDER: Mapping[str, Offer] = {
    "prompt": lambda request, _: prompt_of(request),
    "options": lambda _, options: own_copy(options),
    "context": lambda request, _: context_of(request),
}
"""What promptfoo's `call_api` gets, by position."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A function to be loaded: its name, how to find it, and the target's options as promptfoo has them."""

    name: str
    find: Callable[[], Callable[..., Any]]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The function, how it is called, and whether calling it returns at once with something to await.

    `offered`: out of which its parameters are filled; `read` makes an answer of what it returns.
    """

    function: Callable[..., Any]
    plan: CallPlan
    is_async: bool
    offered: Mapping[str, Offer]
    read: Callable[[object], TargetResponse | Failure]


class _Python:
    def __init__(self, found: _Found, executor: Executor, *, on_our_loop: bool = False) -> None:
        self._found = found
        self._name = found.name
        self._on_our_loop = on_our_loop
        self._executor = executor
        self._loading: Once[_Loaded | Failure] = Once()
        self._loaded: _Loaded | Failure | None = None

    def answer(self, request: TargetRequest) -> Failure | Awaitable[TargetResponse | Failure]:
        if self._loaded is None:
            return self._answer_first(request)
        return self._loaded if isinstance(self._loaded, Failure) else self._begin(self._loaded, request)

    async def _answer_first(self, request: TargetRequest) -> TargetResponse | Failure:
        self._loaded = await self._loading.result(self._load)
        if isinstance(self._loaded, Failure):
            return self._loaded
        return await timed(self._begin(self._loaded, request))

    async def _load(self) -> _Loaded | Failure:
        try:
            return await self._executor.call(lambda: _load(self._name, self._found.find()))
        except ForeignError as error:
            return error.failure

    def _begin(self, loaded: _Loaded, request: TargetRequest) -> Coroutine[Any, Any, TargetResponse | Failure]:
        """Call the function now, not at the first await: the calls of a turn start one by one."""
        offered = {name: loaded.offered[name](request, self._found.options) for name in loaded.plan.used}
        call = loaded.plan.bind(loaded.function, offered)
        return self._answered(loaded, self._await(call) if loaded.is_async else self._on_thread(call))

    async def _answered(self, loaded: _Loaded, value: Awaitable[Any]) -> TargetResponse | Failure:
        try:
            found = await value
            if inspect.isawaitable(found):
                found = await self._await(lambda: found)
            return loaded.read(found)
        except ForeignError as error:
            return error.failure
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return Failure("target-raised", f"{self._name} raised CancelledError")

    def _on_thread(self, call: Callable[[], Any]) -> Awaitable[Any]:
        def guarded() -> Any:
            with foreign_code("target-raised", self._name):
                return call()

        return self._executor.call(guarded)

    def _await(self, call: Callable[[], Any]) -> Awaitable[Any]:
        async def guarded() -> Any:
            with foreign_code("target-raised", self._name):
                value = call()
                return await value if inspect.isawaitable(value) else value

        return guarded() if self._on_our_loop else self._executor.call_async(guarded)

    async def close(self) -> None:
        """Stop waiting for the function to be loaded."""
        await self._loading.close()


def _load(name: str, function: Callable[..., Any]) -> _Loaded:
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  # not whether it can be called: what calling it does
    taken = _taken_by_provider(name, function)
    if taken:
        return _Loaded(function, CallPlan(tuple(PROVIDER)[:taken], {}), is_async, PROVIDER, from_provider)
    return _Loaded(function, plan_call(function, OFFERED, "prompt"), is_async, OFFERED, partial(_answer, name))


def _taken_by_provider(name: str, function: Callable[..., Any]) -> int:
    """How many arguments a function of promptfoo's interface takes by position; 0 where it is none.

    It is one if it is called `call_api`, or takes `options` and `context` after another parameter.
    """
    try:
        given = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return 0
    front = [one for one in given if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    named = [one.name for one in front[1:3]]
    if name.rpartition(".")[2] != "call_api" and named != ["options", "context"]:
        return 0
    return len(PROVIDER) if any(one.kind is one.VAR_POSITIONAL for one in given) else min(len(front), len(PROVIDER))


def _is_cancelled() -> bool:
    """Whether it is this call that is cancelled, and not something inside the function."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _answer(name: str, value: object) -> TargetResponse | Failure:
    if isinstance(value, str):
        found = parsed(value) if value.startswith("{") else value
        error = found if isinstance(found, Failure) else error_in(found)
        return error or from_text(value)
    if value is None:
        return TargetResponse(None)
    if isinstance(value, TargetResponse):
        return checked(value)
    if isinstance(value, Mapping):
        return from_object(value)
    wanted = "text, a mapping with 'output', or a TargetResponse"
    return Failure("bad-answer", f"{name} must return {wanted}, not {type(value).__name__}")
