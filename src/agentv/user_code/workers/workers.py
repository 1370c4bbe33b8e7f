"""The workers of a run, by the directory that code is loaded from, the role, and the environment."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

from agentv.model.values.response import Attempt
from agentv.ports import CodeCall, Raised, Returned, Role
from agentv.user_code.deadline import LIMIT, LONGEST_S
from agentv.user_code.workers.messages import Begin, Call, Failed, Unsendable, Value, Withdraw
from agentv.user_code.workers.worker_process import LostError, WithdrawnError, WorkerProcess

DIED = "user-code-died"

MOST_IDLE = 8
"""Most idle workers to keep. Beyond that, the least recently used one ends."""

_ALONE_AT_ONCE = 4

_CPU_BOUND_MS, _CPU_BOUND_SHARE = 5.0, 0.1
"""Thresholds from which a call counts as CPU-bound: its CPU time in milliseconds, and the share of CPU time in the
duration of all concurrent calls. CPU-bound calls get further workers, because the threads of one compute one at a time.
"""


class _Pool:
    """The workers of one directory, role and environment.

    Attributes:
        shared: the worker for all calls.
        all: all workers that were started and may still be running.
        alone: idle workers for calls that are repeated alone.
        further: more workers, for CPU-bound calls.
        cpu_bound: whether the last call was CPU-bound.
        used: when it was last used, as a serial number.
    """

    def __init__(self, begin: Begin, env: Mapping[str, str], on_loaded: Callable[[list[str]], None]) -> None:
        self._on_loaded = on_loaded
        self.begin = begin
        self.env = env
        self.shared: WorkerProcess | None = None
        self.all: list[WorkerProcess] = []
        self.alone: list[WorkerProcess] = []
        self.further: list[WorkerProcess] = []
        self.cpu_bound = False
        self.used = 0

    def living(self) -> list[WorkerProcess]:
        self.all = [one for one in self.all if not one.has_ended]
        return self.all

    def start(self) -> WorkerProcess:
        worker = WorkerProcess(self.begin, self.env, self._on_loaded)
        self.all.append(worker)
        return worker


class Workers:
    """The workers of a run, started on demand. They belong to one event loop.

    Args:
        on_loaded: receives the files of the modules that a worker of a role has loaded.
        debug: connect the workers to the terminal, for `breakpoint()`, and suspend the time limits.
    """

    def __init__(self, on_loaded: Callable[[Role, list[str]], None] | None = None, *, debug: bool = False) -> None:
        self._on_loaded = on_loaded or (lambda _role, _files: None)
        self._debug = debug
        self._pools: dict[tuple[str, str, tuple[tuple[str, str], ...] | None], _Pool] = {}
        self._numbers = count(1)
        self._uses = count(1)
        self._alone_slots = asyncio.Semaphore(_ALONE_AT_ONCE)

    async def call(self, call: CodeCall) -> Returned | Raised:
        """Call a function and return its value or failure.

        If the worker dies, each of its calls is repeated alone in another worker, and fails only if that one dies too.
        A call that has not begun after a quarter of its time limit, because another one blocks the event loop, is
        moved to a new worker.
        """
        pool = self._pool(call)
        message = self._message(call)
        limit, loop, is_withdrawn = LIMIT.get(), asyncio.get_running_loop(), False
        while True:
            began, waits_since = perf_counter(), loop.time()
            try:
                worker = self._least_busy(pool, call.processes)
                reply = await self._call_in(worker, pool, message, call)
            except WithdrawnError:
                if (
                    limit is not None and not is_withdrawn
                ):  # only once, so that a module that never loads reaches the limit
                    limit.extend(waits_since, loop.time())
                is_withdrawn = True
                continue
            except LostError as lost:
                took_ms = round((perf_counter() - began) * 1000, 3)
                return await self._call_alone(pool, call, Attempt(DIED, _died(call, lost), took_ms))
            except OSError as error:
                return _no_process(call, error)
            except (TypeError, RecursionError) as error:
                return Raised(call.code, f"{call.what} cannot be given its arguments ({type(error).__name__}: {error})")
            pool.cpu_bound = (
                isinstance(reply, Value)
                and reply.cpu_ms > _CPU_BOUND_MS
                and reply.cpu_ms * (worker.load + 1) > reply.duration_ms * _CPU_BOUND_SHARE
            )
            return self._outcome(call, reply)

    async def _call_alone(self, pool: _Pool, call: CodeCall, lost: Attempt) -> Returned | Raised:
        """Repeat a call alone in a worker, unless it continues an earlier one, and return its outcome."""
        if call.continues:
            return Raised(DIED, lost.message)
        async with self._alone_slots:
            try:
                worker = pool.alone.pop() if pool.alone else pool.start()
                if worker.has_ended:
                    worker = pool.start()
            except OSError as error:
                return _no_process(call, error, (lost,))
            await _started(worker)
            try:
                reply = await worker.call(self._message(call), call.handler or _refuse)
            except LostError as again:
                return Raised(DIED, _died(call, again), attempts=(lost,))
            except asyncio.CancelledError:
                worker.retire()
                raise
            pool.alone.append(worker)
            return self._outcome(call, reply, (lost,))

    async def _call_in(self, worker: WorkerProcess, pool: _Pool, message: Call, call: CodeCall) -> Any:
        limit = LIMIT.get()
        loop = asyncio.get_running_loop()
        await _started(worker)
        if self._debug:
            with limit.held(loop.time) if limit is not None else nullcontext():
                return await worker.call(message, call.handler or _refuse)
        patience_s = inf if call.continues else LONGEST_S if limit is None else limit.patience_s
        timer = loop.call_later(patience_s, self._withdraw_waiting, worker, pool)
        try:
            return await worker.call(message, call.handler or _refuse)
        except asyncio.CancelledError:
            if limit is not None:
                blocked = worker.blocked_at and f"the event loop is blocked ({worker.blocked_at})"
                limit.reason = blocked or f"{call.what} did not return and was ended"
            raise
        finally:
            timer.cancel()

    def _withdraw_waiting(self, worker: WorkerProcess, pool: _Pool) -> None:
        """Withdraw the calls of a slow worker that have not begun, so that they begin in another one."""
        if not worker.has_ended:
            if pool.shared is worker:
                pool.shared = None
            if worker in pool.further:
                pool.further.remove(worker)
            worker.send(Withdraw())

    async def close(self) -> None:
        """End every worker and the processes that it started."""
        workers = [worker for pool in self._pools.values() for worker in pool.living()]
        self._pools.clear()
        await asyncio.gather(*(worker.close() for worker in workers))

    def kill(self) -> None:
        """Kill every worker."""
        for pool in self._pools.values():
            for worker in pool.living():
                worker.end()

    def _pool(self, call: CodeCall) -> _Pool:
        directory = call.directory or (str(Path(call.file).parent) if call.file else "")
        env = None if call.env is None else tuple(sorted(call.env.items()))
        key = (directory, call.role, env)
        pool = self._pools.get(key)
        if pool is None:
            rest = [one for one in sys.path if one != directory]
            begin = Begin(directory, rest, self._debug)
            whole = dict(os.environ if call.env is None else call.env)
            pool = self._pools[key] = _Pool(begin, whole, partial(self._on_loaded, call.role))
        return pool

    def _least_busy(self, pool: _Pool, most: int) -> WorkerProcess:
        """Return the least busy worker, or a further one if calls are CPU-bound, all are busy and a core is free."""
        pool.used = next(self._uses)
        shared = pool.shared
        if shared is None or shared.has_ended or shared.retired:
            shared = pool.shared = pool.start()
            self._end_idle()
        pool.further = [one for one in pool.further if not (one.has_ended or one.retired)]
        least = min((shared, *pool.further), key=lambda one: one.load)
        if least.load and pool.cpu_bound and len(pool.further) + 1 < min(most, os.cpu_count() or 1):
            least = pool.start()
            pool.further.append(least)
        return least

    def _end_idle(self) -> None:
        idle = [pool for pool in self._pools.values() if pool.shared is not None and pool.shared.is_idle]
        idle.sort(key=lambda pool: pool.used)
        for pool in idle[: -MOST_IDLE - 1]:
            if pool.shared is not None:
                for worker in (pool.shared, *pool.further):
                    worker.retire()
                pool.shared, pool.further = None, []

    def _message(self, call: CodeCall) -> Call:
        number = next(self._numbers)
        return Call(number, call.adapter, call.file, call.module, call.function, call.payload, call.code, call.what)

    @staticmethod
    def _outcome(call: CodeCall, reply: Any, attempts: tuple[Attempt, ...] = ()) -> Returned | Raised:
        if isinstance(reply, Failed):
            return Raised(reply.code, reply.message, cause=reply.cause, attempts=attempts)
        if isinstance(reply, Unsendable):
            message = f"{call.what} returned a value of the type '{reply.kind}', which is not plain data"
            return Raised("bad-result", message, cause=reply.kind, attempts=attempts)
        return Returned(reply.value, reply.duration_ms, attempts)


def _died(call: CodeCall, lost: LostError) -> str:
    return f"{call.what}: {lost.how} before it answered"


def _no_process(call: CodeCall, error: OSError, attempts: tuple[Attempt, ...] = ()) -> Raised:
    what = f"{call.what} cannot be called: no process starts ({error.strerror})"
    return Raised("cannot-start", what, attempts=attempts)


async def _started(worker: WorkerProcess) -> None:
    """Wait until a worker is ready, without counting that as time of the call."""
    if worker.is_starting:
        limit = LIMIT.get()
        with limit.held(asyncio.get_running_loop().time) if limit is not None else nullcontext():
            await worker.started()


async def _refuse(name: str, _arguments: Sequence[Any]) -> Any:
    raise LookupError(f"'{name}' is not available here")
