"""One JavaScript process that grades, and its channel: requests out, replies in, each a JSON object (`worker.mjs`)."""

from __future__ import annotations

import asyncio
import socket
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from agentv.registry.fields import Command
from agentv.user_code.excerpts import last_error
from agentv.user_code.processes import KILL_TIMEOUT_S, kill_group, start_program

_SHELL = """
exec 3<&0 4>&1 </dev/null >&2
(read -r _ <&3; kill -KILL 0) 4>&- >/dev/null 2>&1 &
exec "$@" 3<&-
"""
"""How the runtime is started. What files print goes to stderr, the channel is descriptor 4, and stdin is a lifeline:
when agentv ends, however it ends, `read` returns and the whole process group is killed, even one that is busy."""

_WORKER = str(Path(__file__).parent / "worker.mjs")
_START_S = 30.0
_READY, _PING = 0, -1

_TICKS = 4
"""Ticks of silence after which a process is blocked; halfway it is pinged."""


class LostError(Exception):
    """The process ended, or was killed, before it replied."""


class WorkerError(msgspec.Struct):
    """Reason why a grading gave no verdict."""

    code: str
    message: str


class WorkerReply(msgspec.Struct):
    """The reply to a request: a result or an error. The reply to a ping has neither."""

    id: int = 0
    result: dict[str, Any] | None = None
    error: WorkerError | None = None


_decode = msgspec.json.Decoder(WorkerReply).decode


class WorkerProcess(asyncio.Protocol):
    """A process that grades, and the requests that it has not answered yet. Belongs to one event loop.

    Args:
        patience_s: seconds of silence, a ping unanswered, after which the process is taken to be blocked and is
            killed; None: it may be busy for as long as it likes.
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
        """Start the process and wait until it can grade.

        Raises:
            LostError: it does not start; the text says what it printed.
        """
        ours, theirs = socket.socketpair()
        command = Command(argv=("/bin/sh", "-c", _SHELL, "agentv", *argv, _WORKER))
        is_ready = False
        try:
            with theirs:
                self._process = await start_program(command, env=env, stdout=theirs.fileno())
            if self.is_lost:  # killed while it was started
                self.kill()
            self._reading = self._loop.create_task(self._read(self._process))
            self._channel, _ = await self._loop.create_connection(lambda: self, sock=ours)
            async with asyncio.timeout(_START_S):
                await self._ready
            is_ready = True
        except (OSError, ValueError, LostError) as error:
            self.kill()
            raise LostError(f"{argv[0]} failed to start: {await self.last_words() or error}") from error
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
            LostError: the process is gone.
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
            self._ping()  # the request that is given up may be what blocks the process
            self._watch()
            raise
        finally:
            self._pending.pop(number, None)

    def kill(self) -> None:
        """Kill the process and all that it started."""
        self.is_lost = True
        if self._process is not None:
            kill_group(self._process.pid)

    @property
    def is_over(self) -> bool:
        """Whether the process and all its children have ended."""
        return self.is_lost and (self._process is None or self._process.returncode is not None)

    async def close(self) -> None:
        """Kill the process, and wait until nothing of it is left."""
        self.kill()
        await self.last_words()
        if self._channel is not None:
            self._channel.close()

    async def last_words(self) -> str:
        """Once the process has ended or is killed: how it ended, and the error that it or a file printed last."""
        if self._process is None:
            return ""
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_TIMEOUT_S):
                status = await self._process.wait()
                kill_group(self._process.pid)  # what it started may hold its stderr open
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
        """Send a line soon; lines of one turn of the event loop are one write."""
        if not self._outbox:
            self._loop.call_soon(self._flush)
        self._outbox.append(line)

    def _flush(self) -> None:
        if self._channel is not None and not self._channel.is_closing():
            self._channel.write(b"".join(self._outbox))
        self._outbox.clear()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`: the process is not blocked."""
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
        """Read a reply; any other line was printed by a file, and ends the process."""
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
        """See `asyncio.Protocol`: the process has ended, or closed its end, so that no request is answered any more."""
        del exc
        self.is_lost = True
        for future in self._pending.values():
            if not future.done():
                future.set_exception(LostError())
        if not self._ready.done():
            self._ready.set_exception(LostError())
            self._ready.exception()  # nobody may be waiting for it any more

    def _ping(self) -> None:
        if not self.is_lost:
            self._is_pinged = True
            self._send(b'{"id":%d}\n' % _PING)

    def _watch(self) -> None:
        """Kill the process if it is silent for too long, from now on and until no answer is expected."""
        if self._tick_s is not None and not self._is_watched:
            self._is_watched = True
            self._silent_ticks = 0
            self._loop.call_later(self._tick_s, self._tick, self._tick_s)

    def _tick(self, tick_s: float) -> None:
        # ticks are counted rather than seconds, so that a pause of our own does not look like one of the process
        self._silent_ticks += 1
        if self.is_lost or not (self._pending or self._is_pinged):
            self._is_watched = False
            return
        if self._silent_ticks >= _TICKS:
            self.kill()
        elif self._silent_ticks == _TICKS // 2:
            self._ping()
        self._loop.call_later(tick_s, self._tick, tick_s)
