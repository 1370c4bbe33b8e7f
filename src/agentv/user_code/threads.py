"""Threads for users' functions. A function that never returns does not keep the process from exiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from agentv.ports import CodeCall, Raised, Returned, Role
    from agentv.user_code.workers.workers import Workers


T = TypeVar("T")

Job = Callable[[], None]


class DaemonThreads(Struct):
    """An executor with daemon threads, which are started on demand and reused.

    It has no limit of its own, because the engine limits concurrent calls. So a thread that hangs does not take the
    place of another.

    Attributes:
        on_loaded: as for `Workers`.
        debug: as for `Workers`.
    """

    on_loaded: Callable[[Role, list[str]], None] | None = None
    debug: bool = False
    _idle: list[SimpleQueue[Job | None]] = []
    _workers: Workers | None = None

    def python(self, call: CodeCall) -> Awaitable[Returned | Raised]:
        """Call a user's function in its worker."""
        if self._workers is None:
            from agentv.user_code.workers.workers import Workers

            self._workers = Workers(self.on_loaded, debug=self.debug)
        return self._workers.call(call)

    def call(self, function: Callable[[], T]) -> Awaitable[T]:
        """Run a function on a daemon thread, with the current context variables, and return an awaitable of its value.

        Raises:
            BaseException: the function raised it.
        """
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        jobs = self._idle.pop() if self._idle else self._start()
        context = copy_context()

        def job() -> None:
            # `function` guards user code itself, so an exception here is passed on to the caller
            try:
                value = context.run(function)
            except BaseException as error:  # noqa: BLE001  # raised again where it is awaited
                _deliver(loop, self._end, jobs, outcome, None, error)
            else:
                _deliver(loop, self._end, jobs, outcome, value, None)

        jobs.put(job)
        return outcome

    def _end(
        self, jobs: SimpleQueue[Job | None], outcome: asyncio.Future[Any], value: object, error: BaseException | None
    ) -> None:
        """Mark a thread as idle and set the outcome of its call. Both happen in one callback of the loop."""
        self._idle.append(jobs)
        if outcome.done():
            return
        if error is None:
            outcome.set_result(value)
        elif isinstance(error, StopIteration):  # futures reject StopIteration, which would end the awaiting generator
            outcome.set_exception(RuntimeError("the function raised StopIteration"))
        else:
            outcome.set_exception(error)

    def close(self) -> None:
        """End the idle threads and kill the workers. Busy threads end with the process."""
        if self._workers is not None:
            self._workers.kill()
        for jobs in self._idle:
            jobs.put(None)
        self._idle.clear()

    async def aclose(self) -> None:
        """Close as `close` does, but first give coroutines in the workers a moment to clean up."""
        if self._workers is not None:
            await self._workers.close()
        self.close()

    def _start(self) -> SimpleQueue[Job | None]:
        jobs: SimpleQueue[Job | None] = SimpleQueue()
        Thread(target=_work, args=(jobs,), name="agentv-user-code", daemon=True).start()
        return jobs


def _work(jobs: SimpleQueue[Job | None]) -> None:
    while (job := jobs.get()) is not None:
        job()


def _deliver(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: Any) -> None:
    if not loop.is_closed():
        try:
            loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop was closed since the check, so nothing awaits the result
            return
