"""Threads for users' functions. One that never returns is left behind and cannot hold up the process."""

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
    """An executor whose threads are daemons, started as needed and used again.

    It is as wide as the number of calls that are awaited at once: the engine's workers bound that, and a thread
    that hangs takes no place away from the others.

    Attributes:
        on_loaded, debug: as of `Workers`.
    """

    on_loaded: Callable[[Role, list[str]], None] | None = None
    debug: bool = False
    _idle: list[SimpleQueue[Job | None]] = []
    _workers: Workers | None = None

    def python(self, call: CodeCall) -> Awaitable[Returned | Raised]:
        """Call a function of the user's in its worker."""
        if self._workers is None:
            from agentv.user_code.workers.workers import Workers

            self._workers = Workers(self.on_loaded, debug=self.debug)
        return self._workers.call(call)

    def call(self, function: Callable[[], T]) -> Awaitable[T]:
        """Start the function on a daemon thread; awaiting the result gives its value. It sees our context variables.

        Raises:
            BaseException: what the function raised.
        """
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        jobs = self._idle.pop() if self._idle else self._start()
        context = copy_context()

        def job() -> None:
            # `foreign_code` inside `function` turns users' errors into values; what is left is ours to pass on
            try:
                value = context.run(function)
            except BaseException as error:  # noqa: BLE001  # nothing is swallowed: it is raised where it is awaited
                _deliver(loop, self._end, jobs, outcome, None, error)
            else:
                _deliver(loop, self._end, jobs, outcome, value, None)

        jobs.put(job)
        return outcome

    def _end(
        self, jobs: SimpleQueue[Job | None], outcome: asyncio.Future[Any], value: object, error: BaseException | None
    ) -> None:
        """In the loop: the thread is free again, and who waits is reported. One wake-up of the loop does both."""
        self._idle.append(jobs)
        if outcome.done():
            return
        if error is None:
            outcome.set_result(value)
        elif isinstance(error, StopIteration):  # a future refuses it, since it would end the generator that awaits
            outcome.set_exception(RuntimeError("the function raised StopIteration"))
        else:
            outcome.set_exception(error)

    def close(self) -> None:
        """Let the idle threads end, and the loop; kill the workers. What is still busy ends with the process."""
        if self._workers is not None:
            self._workers.kill()
        for jobs in self._idle:
            jobs.put(None)
        self._idle.clear()

    async def aclose(self) -> None:
        """Close as `close` does, and give remaining coroutines a moment to clean up."""
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
        except RuntimeError:  # the loop closed between the two lines: nobody waits any more
            return
