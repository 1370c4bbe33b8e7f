"""The workers of a run: one for each directory that code is loaded from, each role, and each environment."""

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
"""Workers without a call that stay; beyond them the one that was used longest ago ends."""

_ALONE_AT_ONCE = 4

_COMPUTES_MS, _COMPUTES_SHARE = 5.0, 0.1
"""Milliseconds that a call computes, and the part of their duration that it and those beside it do, from which on calls
compute rather than wait: threads of one process compute one at a time.
"""


class _Pool:
    """The worker of one directory, role and environment, further ones, and those for calls that must be alone.

    Attributes:
        further: more workers, for calls that compute and may be divided.
        computes: whether the call that returned last did.
    """

    def __init__(self, begin: Begin, env: Mapping[str, str], on_loaded: Callable[[list[str]], None]) -> None:
        self._on_loaded = on_loaded
        self.begin = begin
        self.env = env
        self.shared: WorkerProcess | None = None
        self.all: list[WorkerProcess] = []
        self.alone: list[WorkerProcess] = []
        self.further: list[WorkerProcess] = []
        self.computes = False
        self.used = 0

    def living(self) -> list[WorkerProcess]:
        self.all = [one for one in self.all if not one.has_ended]
        return self.all

    def start(self) -> WorkerProcess:
        worker = WorkerProcess(self.begin, self.env, self._on_loaded)
        self.all.append(worker)
        return worker


class Workers:
    """Starts workers when they are first needed. Belongs to one event loop.

    Args:
        on_loaded: receives the files of modules that a worker of a role has loaded.
        debug: they are connected to the terminal, for `breakpoint()`, and no call is given up.
    """

    def __init__(self, on_loaded: Callable[[Role, list[str]], None] | None = None, *, debug: bool = False) -> None:
        self._on_loaded = on_loaded or (lambda _role, _files: None)
        self._debug = debug
        self._pools: dict[tuple[str, str, tuple[tuple[str, str], ...] | None], _Pool] = {}
        self._numbers = count(1)
        self._uses = count(1)
        self._alone_slots = asyncio.Semaphore(_ALONE_AT_ONCE)

    async def call(self, call: CodeCall) -> Returned | Raised:
        """What the function returned, or why it returned nothing.

        A call whose worker dies is made again, alone; it is at fault only if it dies alone. One that has not begun
        after a quarter of its time limit, since another blocks the event loop, begins in a further worker.
        """
        pool = self._pool(call)
        message = self._message(call)
        limit, loop, is_withdrawn = LIMIT.get(), asyncio.get_running_loop(), False
        while True:
            began, waits_since = perf_counter(), loop.time()
            try:
                worker = self._least_busy(pool, call.processes)
                reply = await self._patiently(worker, pool, message, call)
            except WithdrawnError:
                if limit is not None and not is_withdrawn:  # once: a module that never loads has to reach the limit
                    limit.put_off(waits_since, loop.time())
                is_withdrawn = True
                continue
            except LostError as lost:
                took_ms = round((perf_counter() - began) * 1000, 3)
                return await self._alone(pool, call, Attempt(DIED, _died(call, lost), took_ms))
            except OSError as error:
                return Raised("cannot-start", f"{call.what} cannot be called: no process starts ({error.strerror})")
            except (TypeError, RecursionError) as error:
                return Raised(call.code, f"{call.what} cannot be given its arguments ({type(error).__name__}: {error})")
            pool.computes = (
                isinstance(reply, Value)
                and reply.cpu_ms > _COMPUTES_MS
                and reply.cpu_ms * (worker.load + 1) > reply.duration_ms * _COMPUTES_SHARE
            )
            return self._outcome(call, reply)

    async def _alone(self, pool: _Pool, call: CodeCall, lost: Attempt) -> Returned | Raised:
        """What a call comes to that is made again in a worker of its own, if it can be."""
        if call.continues:
            return Raised(DIED, lost.message)
        async with self._alone_slots:
            worker = pool.alone.pop() if pool.alone else pool.start()
            if worker.has_ended:
                worker = pool.start()
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

    async def _patiently(self, worker: WorkerProcess, pool: _Pool, message: Call, call: CodeCall) -> Any:
        limit = LIMIT.get()
        loop = asyncio.get_running_loop()
        await _started(worker)
        if self._debug:
            with limit.held(loop.time) if limit is not None else nullcontext():
                return await worker.call(message, call.handler or _refuse)
        patience_s = inf if call.continues else LONGEST_S if limit is None else limit.patience_s
        looking = loop.call_later(patience_s, self._look, worker, pool)
        try:
            return await worker.call(message, call.handler or _refuse)
        except asyncio.CancelledError:
            if limit is not None:
                blocked = worker.blocked_at and f"the event loop is blocked ({worker.blocked_at})"
                limit.reason = blocked or f"{call.what} did not return and was ended"
            raise
        finally:
            looking.cancel()

    def _look(self, worker: WorkerProcess, pool: _Pool) -> None:
        """A call takes long: those that have not begun since it blocks the event loop begin elsewhere."""
        if not worker.has_ended:
            if pool.shared is worker:
                pool.shared = None
            if worker in pool.further:
                pool.further.remove(worker)
            worker.send(Withdraw())

    async def close(self) -> None:
        """End every worker, with all that it started."""
        workers = [worker for pool in self._pools.values() for worker in pool.living()]
        self._pools.clear()
        await asyncio.gather(*(worker.close() for worker in workers))

    def kill(self) -> None:
        """Kill every worker now."""
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
        """The worker for a call: a further one while calls compute, all are busy, and a core is left."""
        pool.used = next(self._uses)
        shared = pool.shared
        if shared is None or shared.has_ended or shared.retired:
            shared = pool.shared = pool.start()
            self._end_idle()
        pool.further = [one for one in pool.further if not (one.has_ended or one.retired)]
        least = min((shared, *pool.further), key=lambda one: one.load)
        if least.load and pool.computes and len(pool.further) + 1 < min(most, os.cpu_count() or 1):
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


async def _started(worker: WorkerProcess) -> None:
    """Wait until a worker can be called. The time limit stands still: a call is not to blame for the start."""
    if worker.is_starting:
        limit = LIMIT.get()
        with limit.held(asyncio.get_running_loop().time) if limit is not None else nullcontext():
            await worker.started()


async def _refuse(name: str, _arguments: Sequence[Any]) -> Any:
    raise LookupError(f"'{name}' is not available here")
