"""Preparation of a target before its first answer: done once, awaited by every call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from time import perf_counter
from typing import Generic, TypeVar

from msgspec.structs import replace

from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import Executor
from agentv.user_code.deadline import LIMIT

T = TypeVar("T")


class Once(Generic[T]):
    """A preparation that many calls wait for. A call that is cancelled does not take it away from the others."""

    def __init__(self) -> None:
        self._task: asyncio.Future[T] | None = None

    async def result(self, prepare: Callable[[], Awaitable[T]]) -> T:
        """What the first `prepare` gave, whichever call brought it; it is not tried again."""
        if self._task is None:
            self._task = asyncio.ensure_future(prepare())
        return await asyncio.shield(self._task)

    async def close(self) -> None:
        """Stop a preparation that is still under way, and wait until it is gone."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))


class Imports(Generic[T]):
    """What a target loads before its first call, such as an SDK and the price list: that takes a second and more.

    Args:
        executor: has the thread on which `load` runs.
        load: imports, and returns what the target needs of it.
    """

    def __init__(self, executor: Executor, load: Callable[[], T]) -> None:
        self._executor, self._load = executor, load
        self._once: Once[T] = Once()

    async def ready(self) -> T:
        """Return what was loaded, once it is. The wait is not the call's time: on a busy machine it takes minutes."""
        limit = LIMIT.get()
        with nullcontext() if limit is None else limit.held(asyncio.get_running_loop().time):
            return await self._once.result(lambda: self._executor.call(self._load))


async def timed(answering: Awaitable[TargetResponse | Failure]) -> TargetResponse | Failure:
    """The answer with its own duration, so that what the call had to wait for before does not count."""
    started = perf_counter()
    answer = await answering
    if isinstance(answer, Failure) or answer.duration_ms is not None:
        return answer
    return replace(answer, duration_ms=(perf_counter() - started) * 1000)
