"""The JavaScript runtime behind `services.javascript`: one process for all gradings, others for those that break it.

A grading that ends the process, or blocks it, takes the others down with it. None of them is to blame but one, and
which one shows when each is repeated alone.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec

from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject, plain_json
from agentv.user_code.javascript.runtime import HOW_TO_GET, find_runtime
from agentv.user_code.javascript.worker import LostError, WorkerProcess, WorkerReply

PATIENCE_S = 1.0
"""Seconds without a word after which the process that all share is taken to be blocked."""

_MOST_AT_ONCE = 4


class JavaScriptHost:
    """Grades with users' files. Nothing is started before the first grading; belongs to one event loop.

    Args:
        env: the environment of the process; None: this process's own.
        patience_s: see PATIENCE_S.
    """

    def __init__(self, env: Mapping[str, str] | None = None, *, patience_s: float = PATIENCE_S) -> None:
        self._env = env
        self._patience_s = patience_s
        self._runtime: asyncio.Task[tuple[str, ...] | str] | None = None
        self._shared: asyncio.Task[WorkerProcess] | None = None
        self._workers: set[WorkerProcess] = set()
        self._idle: list[WorkerProcess] = []
        self._isolated: set[str] = set()
        self._is_closed = False
        self._isolated_slots = asyncio.Semaphore(_MOST_AT_ONCE)
        self._retry_slots = asyncio.Semaphore(_MOST_AT_ONCE)

    async def call(self, source: str, payload: Mapping[str, Json], timeout_s: float = math.inf) -> Json | Failure:
        """Have a function called, whatever it returns.

        Args:
            source: `call:NAME:PATH` or `expression:NAMES:CODE`, called with `payload["arguments"]`; or a provider of
                promptfoo's, `provider:NAME:PATH`, called with `prompt`, `context` and `options`. A name may lack.
            payload: what it gets.
            timeout_s: as for `grade`.

        Returns:
            Its value; None where it returned nothing; else a Failure as of `grade`.
        """
        answer = await self.grade(source, payload, timeout_s)
        return answer if isinstance(answer, Failure) else answer.get("value")

    async def grade(self, file: str, payload: Mapping[str, Json], timeout_s: float = math.inf) -> JsonObject | Failure:
        """Have the default export of `file` grade the payload.

        Args:
            file: absolute path of a `.ts`, `.js`, `.mts` or `.mjs` file. Or what is called with the answer and the
                context: `function:NAME:PATH` with or without a name, `javascript:CODE`. Or what writes a judge prompt,
                `prompt:NAME:PATH`, which comes back as `{"prompt"}`.
            payload: the wire object, snake_case.
            timeout_s: seconds; inf: who calls sees to it.

        Returns:
            What it returned, a bool or number as `{"pass"}` or `{"score"}`; else a Failure `assertion-raised`,
            `assertion-crashed`, `bad-result`, `cannot-load`, `timeout`, `cannot-start` or `no-javascript-runtime`.
        """
        asked = {"file": file, "payload": payload}
        try:
            request = msgspec.json.encode(asked, enc_hook=plain_json)[1:]
        except UnicodeEncodeError:  # half a surrogate pair, which a model may have written as an escape
            request = json.dumps(asked, default=plain_json).encode()[1:]
        try:
            async with asyncio.timeout(None if timeout_s == math.inf else timeout_s):
                answer = await self._answer(file, request)
        except TimeoutError:
            return Failure("timeout", f"returned nothing within {timeout_s:g} s")
        except _NoRuntimeError as error:
            return error.failure
        if isinstance(answer, Failure):
            return answer
        if answer.error is not None:
            return Failure(answer.error.code, answer.error.message)
        return answer.result or {}

    async def close(self) -> None:
        """Kill every process, with all that it started. Nothing is graded any more."""
        self._is_closed = True
        tasks = [task for task in (self._runtime, self._shared) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in self._workers))

    async def _answer(self, file: str, request: bytes) -> WorkerReply | Failure:
        if file in self._isolated:
            async with self._isolated_slots:
                return await self._answer_alone(file, request)
        try:
            return await (await self._shared_worker()).ask(request)
        except LostError:
            async with self._retry_slot():
                return await self._answer_alone(file, request)

    async def _answer_alone(self, file: str, request: bytes) -> WorkerReply | Failure:
        """On a process of its own: what becomes of it is this file's doing, and it may block while its time lasts."""
        self._idle = [one for one in self._idle if not one.is_lost]
        worker = self._idle.pop() if self._idle else await self._start(None)
        late = asyncio.get_running_loop().call_later(self._patience_s, self._isolated.add, file)
        try:
            answer = await worker.ask(request)
        except LostError:
            self._isolated.add(file)
            return Failure("assertion-crashed", f"ended the JavaScript process ({await worker.last_words()})")
        except asyncio.CancelledError:
            self._isolated.add(file)
            worker.kill()
            raise
        finally:
            late.cancel()
        self._idle.append(worker)
        return answer

    @asynccontextmanager
    async def _retry_slot(self) -> AsyncIterator[None]:
        """A place among the few that are repeated at once; one that blocks gives it up to the next."""
        await self._retry_slots.acquire()
        place = [self._retry_slots]

        def leave() -> None:
            if place:
                place.pop().release()

        late = asyncio.get_running_loop().call_later(self._patience_s, leave)
        try:
            yield
        finally:
            late.cancel()
            leave()

    async def _shared_worker(self) -> WorkerProcess:
        if self._shared is None or (self._shared.done() and _is_lost(self._shared)):
            self._shared = asyncio.get_running_loop().create_task(self._start(self._patience_s))
        try:
            return await asyncio.shield(self._shared)
        except asyncio.CancelledError:
            if self._shared.cancelled():  # by `close`; it is not the call that was cancelled
                raise _shut_down() from None
            raise

    async def _start(self, patience_s: float | None) -> WorkerProcess:
        if self._is_closed:
            raise _shut_down()
        env = dict(os.environ if self._env is None else self._env)
        if self._runtime is None:
            self._runtime = asyncio.get_running_loop().create_task(asyncio.to_thread(find_runtime, env.get("PATH", "")))
        runtime = await asyncio.shield(self._runtime)
        if isinstance(runtime, str):
            message = f"needs a JavaScript runtime; {HOW_TO_GET} (found: {runtime})"
            raise _NoRuntimeError(Failure("no-javascript-runtime", message))
        worker = WorkerProcess(patience_s)
        self._workers = {one for one in self._workers if not one.is_over} | {worker}
        try:
            await worker.start(runtime, env)
        except LostError as error:
            raise _NoRuntimeError(Failure("cannot-start", str(error))) from error
        return worker


class _NoRuntimeError(Exception):
    """Nothing can be graded here; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _shut_down() -> _NoRuntimeError:
    return _NoRuntimeError(Failure("cannot-start", "was called too late: the JavaScript runtime was shut down"))


def _is_lost(task: asyncio.Task[WorkerProcess]) -> bool:
    """Whether the process that was started is gone. A start that failed is not tried again."""
    return task.cancelled() or (task.exception() is None and task.result().is_lost)
