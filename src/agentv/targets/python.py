"""`python`: a function of the user's answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Annotated, Any, ClassVar

from agentv.lazy_dataclass import dataclass
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Doc, FunctionRef
from agentv.registry.types import ProviderSettings
from agentv.targets.http.answers import checked, from_object, from_text
from agentv.targets.http.once import Once, timed
from agentv.user_code.functions.functions import CallPlan, load_function, plan_call
from agentv.user_code.functions.guard import ForeignError, foreign_code


@dataclass(frozen=True, slots=True)
class Python(ProviderSettings):
    """Calls a Python function, sync or async."""

    short: ClassVar[str | None] = "function"

    function: Annotated[
        FunctionRef, Doc("`file.py:name` or `package.module:name`; receives the parameters that it names")
    ]

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that loads the function when it is first asked."""
        del spec
        ref = self.function
        return _Python(ref.name, lambda: load_function(ref.name, path=ref.path, module=ref.module), executor)


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
        return _Python(spec.name, lambda: self.function, executor, on_our_loop=self.on_our_loop)


def _own(value: Any) -> Any:
    """A copy for the function to do with as it likes: the case is shared by its samples and assertions."""
    if isinstance(value, Mapping):
        return {key: _own(inner) for key, inner in value.items()}
    return [_own(inner) for inner in value] if isinstance(value, list | tuple) else value


OFFERED: Mapping[str, Callable[[TargetRequest], Any]] = {
    "prompt": lambda request: request.prompt,
    "messages": lambda request: _own([message.as_json() for message in request.messages]),
    "vars": lambda request: _own(request.vars),
    "metadata": lambda request: _own(request.metadata),
    "case_id": lambda request: request.case_id,
    "workspace_path": lambda request: request.workspace_path,
}
"""What a function may ask for by the name of a parameter (SPEC section 12)."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The function, how it is called, and whether calling it returns at once with something to await."""

    function: Callable[..., Any]
    plan: CallPlan
    is_async: bool


class _Python:
    def __init__(
        self, name: str, find: Callable[[], Callable[..., Any]], executor: Executor, *, on_our_loop: bool = False
    ) -> None:
        self._name = name
        self._on_our_loop = on_our_loop
        self._find = find
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
            return await self._executor.call(lambda: _load(self._find()))
        except ForeignError as error:
            return error.failure

    def _begin(self, loaded: _Loaded, request: TargetRequest) -> Coroutine[Any, Any, TargetResponse | Failure]:
        """Call the function now, not at the first await: the calls of a turn start one by one."""
        offered = {name: OFFERED[name](request) for name in loaded.plan.asked}
        call = loaded.plan.bind(loaded.function, offered)
        return self._answered(self._await(call) if loaded.is_async else self._on_thread(call))

    async def _answered(self, value: Awaitable[Any]) -> TargetResponse | Failure:
        try:
            found = await value
            if inspect.isawaitable(found):
                found = await self._await(lambda: found)
            return _answer(self._name, found)
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


def _load(function: Callable[..., Any]) -> _Loaded:
    plan = plan_call(function, OFFERED, "prompt")
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  # not whether it can be called: what calling it does
    return _Loaded(function, plan, is_async)


def _is_cancelled() -> bool:
    """Whether it is this call that is cancelled, and not something inside the function."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _answer(name: str, value: object) -> TargetResponse | Failure:
    if isinstance(value, str):
        return from_text(value)
    if value is None:
        return TargetResponse(None)
    if isinstance(value, TargetResponse):
        return checked(value)
    if isinstance(value, Mapping):
        return from_object(value)
    wanted = "text, a mapping with 'output', or a TargetResponse"
    return Failure("bad-answer", f"{name} must return {wanted}, not {type(value).__name__}")
