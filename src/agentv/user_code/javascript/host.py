"""The JavaScript processes behind `services.javascript`: one for all calls, and others for calls that break it.

A call that ends or blocks the shared process makes all its other calls fail too. To find the one at fault, each call is
then repeated alone.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import socket
from asyncio.subprocess import Process
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject, plain_json
from agentv.registry.fields import Command
from agentv.user_code.excerpts import last_error
from agentv.user_code.javascript.runtime import HOW_TO_GET, find_runtime
from agentv.user_code.processes import KILL_TIMEOUT_S, kill_group, start_program

_SHELL = """
exec 3<&0 4>&1 </dev/null >&2
(read -r _ <&3; kill -KILL 0) 4>&- >/dev/null 2>&1 &
exec "$@" 3<&-
"""
"""Shell script that starts the runtime. Its output goes to stderr, and descriptor 4 is the channel for replies. When
agentv ends for any reason, stdin is closed, so `read` returns and the process group is killed, even if it is busy."""

_WORKER = str(Path(__file__).parent / "worker.mjs")
_START_S = 30.0
_READY, _PING = 0, -1

_TICKS = 4
"""Number of ticks without a reply after which a process counts as blocked. It is pinged after half of them."""


class LostError(Exception):
    """The process ended, or was killed, before it replied."""


class WorkerError(msgspec.Struct):
    """The error of a call."""

    code: str
    message: str


class WorkerReply(msgspec.Struct):
    """The reply to a request, with a result or an error. The reply to a ping has neither."""

    id: int = 0
    result: dict[str, Any] | None = None
    error: WorkerError | None = None


_decode = msgspec.json.Decoder(WorkerReply).decode


class WorkerProcess(asyncio.Protocol):
    """A JavaScript process and its pending requests. It belongs to one event loop.

    Args:
        patience_s: seconds without a reply, even to a ping, after which the process counts as blocked and is killed;
            None for no limit.
    """

    def __init__(self, patience_s: float | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._process: Process | None = None
        self._printed: deque[bytes] = deque(maxlen=20)
        self._reading: asyncio.Task[None] | None = None
        self._channel: asyncio.Transport | None = None
        self._outbox: list[bytes] = []
        self._pieces: list[bytes] = []
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._pending: dict[int, asyncio.Future[WorkerReply]] = {}
        self._requests = 0
        self._tick_s = None if patience_s is None else patience_s / _TICKS
        self._silent_ticks = 0
        self._is_watched = False
        self._is_pinged = False
        self.is_lost = False

    async def start(self, argv: tuple[str, ...], env: Mapping[str, str]) -> None:
        """Start the process and wait until it is ready.

        Raises:
            LostError: the process does not start; the message contains its last output.
        """
        ours, theirs = socket.socketpair()
        command = Command(argv=("/bin/sh", "-c", _SHELL, "agentv", *argv, _WORKER))
        is_ready = False
        try:
            with theirs:
                self._process = await start_program(command, env=env, stdout=theirs.fileno())
            if self.is_lost:  # killed during its start
                self.kill()
            self._reading = self._loop.create_task(self._read(self._process))
            self._channel, _ = await self._loop.create_connection(lambda: self, sock=ours)
            async with asyncio.timeout(_START_S):
                await self._ready
            is_ready = True
        except (OSError, ValueError, LostError) as error:
            self.kill()
            raise LostError(f"{argv[0]} failed to start: {await self.how_it_ended() or error}") from error
        finally:
            if not is_ready:
                self.kill()
            if self._channel is None:
                ours.close()

    async def ask(self, request: bytes) -> WorkerReply:
        """Send one request and wait for its reply.

        Args:
            request: a JSON object with `file` and `payload`, without its opening brace.

        Raises:
            LostError: the process has ended.
        """
        if self.is_lost:
            raise LostError
        self._requests += 1
        number = self._requests
        future: asyncio.Future[WorkerReply] = self._loop.create_future()
        self._pending[number] = future
        self._send(b'{"id":%d,%s\n' % (number, request))
        self._watch()
        try:
            return await future
        except asyncio.CancelledError:
            self._ping()  # the cancelled request may be blocking the process
            self._watch()
            raise
        finally:
            self._pending.pop(number, None)

    def kill(self) -> None:
        """Kill the process and its process group."""
        self.is_lost = True
        if self._process is not None:
            kill_group(self._process.pid)

    @property
    def has_ended(self) -> bool:
        """Whether the process was lost and has ended."""
        return self.is_lost and (self._process is None or self._process.returncode is not None)

    async def close(self) -> None:
        """Kill the process and wait for its end."""
        self.kill()
        await self.how_it_ended()
        if self._channel is not None:
            self._channel.close()

    async def how_it_ended(self) -> str:
        """Return how the process ended, with the last error that it printed, after it has ended or was killed."""
        if self._process is None:
            return ""
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_TIMEOUT_S):
                status = await self._process.wait()
                kill_group(self._process.pid)  # its children may keep stderr open
                if self._reading is not None:
                    await self._reading
                error = last_error(b"".join(self._printed))
                how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
                return f"{how}: {error}" if error else how
        return "did not exit"

    async def _read(self, process: Process) -> None:
        while process.stderr is not None and (piece := await process.stderr.read(4096)):
            self._printed.append(piece)

    def _send(self, line: bytes) -> None:
        """Queue a line. All lines of one iteration of the event loop are sent in one write."""
        if not self._outbox:
            self._loop.call_soon(self._flush)
        self._outbox.append(line)

    def _flush(self) -> None:
        if self._channel is not None and not self._channel.is_closing():
            self._channel.write(b"".join(self._outbox))
        self._outbox.clear()

    def data_received(self, data: bytes) -> None:
        """Read replies, which show that the process is not blocked."""
        self._silent_ticks = 0
        *lines, rest = data.split(b"\n")
        if lines and self._pieces:
            lines[0] = b"".join([*self._pieces, lines[0]])
            self._pieces = []
        if rest:
            self._pieces.append(rest)
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        """Handle a reply. Kill the process after any other line, which user code must have written to the channel."""
        try:
            reply = _decode(line)
        except (msgspec.DecodeError, RecursionError):
            self.kill()
            return
        if reply.id == _PING:
            self._is_pinged = False
        elif reply.id == _READY and not self._ready.done():
            self._ready.set_result(None)
        future = self._pending.get(reply.id)
        if future is not None and not future.done():
            future.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all pending requests: the process has ended or closed the channel."""
        del exc
        self.is_lost = True
        for future in self._pending.values():
            if not future.done():
                future.set_exception(LostError())
        if not self._ready.done():
            self._ready.set_exception(LostError())
            self._ready.exception()  # marks it as retrieved, in case it is no longer awaited

    def _ping(self) -> None:
        if not self.is_lost:
            self._is_pinged = True
            self._send(b'{"id":%d}\n' % _PING)

    def _watch(self) -> None:
        """Start the ticks, which kill the process if it is silent for too long, until no reply is pending."""
        if self._tick_s is not None and not self._is_watched:
            self._is_watched = True
            self._silent_ticks = 0
            self._loop.call_later(self._tick_s, self._tick, self._tick_s)

    def _tick(self, tick_s: float) -> None:
        # ticks are counted instead of seconds, so that a pause of this process does not count
        self._silent_ticks += 1
        if self.is_lost or not (self._pending or self._is_pinged):
            self._is_watched = False
            return
        if self._silent_ticks >= _TICKS:
            self.kill()
        elif self._silent_ticks == _TICKS // 2:
            self._ping()
        self._loop.call_later(tick_s, self._tick, tick_s)


PATIENCE_S = 1.0
"""Seconds without a reply after which the shared process counts as blocked."""

_MOST_AT_ONCE = 4


class JavaScriptHost:
    """Calls users' JavaScript. Processes start at the first call. A host belongs to one event loop.

    Args:
        env: the environment of the processes; None for that of this process.
        patience_s: seconds without a reply after which the shared process counts as blocked.
    """

    def __init__(self, env: Mapping[str, str] | None = None, *, patience_s: float = PATIENCE_S) -> None:
        self.env = env
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
        """Call a function that may return any JSON value.

        Args:
            source: `call:NAME:PATH` or `expression:NAMES:CODE`, called with `payload["arguments"]`; or
                `provider:NAME:PATH` for a promptfoo provider, called with `prompt`, `context` and `options`. NAME may
                be empty.
            payload: the arguments.
            timeout_s: as for `grade`.

        Returns:
            The value, None if the function returned nothing, or a Failure as for `grade`.
        """
        answer = await self.grade(source, payload, timeout_s)
        return answer if isinstance(answer, Failure) else answer.get("value")

    async def grade(self, file: str, payload: Mapping[str, Json], timeout_s: float = math.inf) -> JsonObject | Failure:
        """Grade the payload with the default export of `file`.

        Args:
            file: absolute path of a `.ts`, `.js`, `.mts` or `.mjs` file. Also `function:NAME:PATH` (NAME may be empty)
                or `javascript:CODE`, called with the answer and the context; or `prompt:NAME:PATH`, which returns a
                judge prompt as `{"prompt"}`.
            payload: the wire object, with keys in snake_case.
            timeout_s: time limit in seconds; inf if the caller has its own.

        Returns:
            The returned object, with a bool as `{"pass"}` and a number as `{"score"}`; or a Failure with the code
            `assertion-raised`, `assertion-crashed`, `bad-result`, `cannot-load`, `timeout`, `cannot-start` or
            `no-javascript-runtime`.
        """
        asked = {"file": file, "payload": payload}
        try:
            request = msgspec.json.encode(asked, enc_hook=plain_json)[1:]
        except UnicodeEncodeError:  # half of a surrogate pair, for instance from an escape in a model's answer
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
        """Kill every process and its descendants. Later calls fail."""
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
        """Make a request alone in a process, where a crash is this file's fault. It may block until its time limit."""
        self._idle = [one for one in self._idle if not one.is_lost]
        worker = self._idle.pop() if self._idle else await self._start(None)
        late = asyncio.get_running_loop().call_later(self._patience_s, self._isolated.add, file)
        try:
            answer = await worker.ask(request)
        except LostError:
            self._isolated.add(file)
            return Failure("assertion-crashed", f"ended the JavaScript process ({await worker.how_it_ended()})")
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
        """Hold one of the few slots for repeated calls. A call that takes long gives its slot up to the next."""
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
            if self._shared.cancelled():  # by `close`: this call itself was not cancelled
                raise _shut_down() from None
            raise

    async def _start(self, patience_s: float | None) -> WorkerProcess:
        if self._is_closed:
            raise _shut_down()
        env = dict(os.environ if self.env is None else self.env)
        if self._runtime is None:
            self._runtime = asyncio.get_running_loop().create_task(asyncio.to_thread(find_runtime, env.get("PATH", "")))
        runtime = await asyncio.shield(self._runtime)
        if isinstance(runtime, str):
            message = f"needs a JavaScript runtime; {HOW_TO_GET} (found: {runtime})"
            raise _NoRuntimeError(Failure("no-javascript-runtime", message))
        worker = WorkerProcess(patience_s)
        self._workers = {one for one in self._workers if not one.has_ended} | {worker}
        try:
            await worker.start(runtime, env)
        except LostError as error:
            raise _NoRuntimeError(Failure("cannot-start", str(error))) from error
        return worker


class _NoRuntimeError(Exception):
    """JavaScript cannot run; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _shut_down() -> _NoRuntimeError:
    return _NoRuntimeError(Failure("cannot-start", "was called too late: the JavaScript runtime was shut down"))


def _is_lost(task: asyncio.Task[WorkerProcess]) -> bool:
    """Whether a process that was started has been lost. A failed start is not repeated."""
    return task.cancelled() or (task.exception() is None and task.result().is_lost)
