"""One JavaScript process and the line to it: requests out, answers in, a JSON object each (see `worker.mjs`)."""

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
from agentv.user_code.processes.processes import kill_group, start_program

_WORKER = str(Path(__file__).parent / "worker.mjs")
_START_S = 30.0
_BURIAL_S = 5.0
_READY, _PING = 0, -1

_SHELL = """
exec 3<&0 4>&1 </dev/null >&2
(read -r _ <&3; kill -KILL 0) 4>&- >/dev/null 2>&1 &
exec "$@" 3<&-
"""
"""How the runtime is started. What files print goes to stderr, the line is descriptor 4, and stdin is a lifeline:
when agentv ends, however it ends, `read` returns and the whole process group is killed, even one that is busy."""


class LostError(Exception):
    """The process ended, or was killed, before it answered."""


class Refusal(msgspec.Struct):
    """Why a grading gave no verdict."""

    code: str
    message: str


class Answer(msgspec.Struct):
    """What came back for one request: a result, or why there is none. A ping gets neither."""

    id: int = 0
    result: dict[str, Any] | None = None
    error: Refusal | None = None


class WorkerProcess(asyncio.Protocol):
    """A process that grades, and the gradings that it has not answered yet.

    Args:
        patience_s: seconds of silence, a ping unanswered, after which the process is taken to be blocked and is
            killed; None: it may be busy for as long as it likes.
    """

    def __init__(self, patience_s: float | None) -> None:
        self._patience_s = patience_s
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._outbox: list[bytes] = []
        self._pieces: list[bytes] = []
        self._sent = 0
        self._silent_ticks = 0
        self._watching = False
        self._pinged = False
        self._said: deque[bytes] = deque(maxlen=20)
        self._socket: socket.socket | None = None
        self._process: Process | None = None
        self._transport: asyncio.Transport | None = None
        self._draining: asyncio.Task[None] | None = None
        self.is_lost = False

    async def start(self, argv: tuple[str, ...], env: Mapping[str, str]) -> None:
        """Start the process and wait until it can grade.

        Raises:
            LostError: it does not start; the text says what it printed.
        """
        ours, theirs = socket.socketpair()
        self._socket = ours
        command = Command(argv=("/bin/sh", "-c", _SHELL, "agentv", *argv, _WORKER))
        is_ready = False
        try:
            with theirs:
                self._process = await start_program(command, env=env, stdout=theirs.fileno())
            if self.is_lost:  # it was to be killed before there was anything to kill
                self.kill()
            self._draining = self._loop.create_task(self._drain(self._process))
            self._transport, _ = await self._loop.create_connection(lambda: self, sock=ours)
            async with asyncio.timeout(_START_S):
                await self._ready
            is_ready = True
        except (OSError, ValueError, LostError) as error:
            self.kill()
            raise LostError(f"{argv[0]} failed to start: {await self.last_words() or error}") from error
        finally:
            if not is_ready:
                self.kill()

    async def ask(self, request: bytes) -> Answer:
        """Have one request answered.

        Args:
            request: a JSON object with `file` and `payload`, without its opening brace.

        Raises:
            LostError: the process is gone.
        """
        if self.is_lost:
            raise LostError
        self._sent += 1
        number = self._sent
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting[number] = future
        self._send(b'{"id":%d,%s\n' % (number, request))
        self._watch()
        try:
            return await future
        except asyncio.CancelledError:
            self._ping()  # the one that is given up may be what blocks the process
            self._watch()
            raise
        finally:
            self._waiting.pop(number, None)

    def kill(self) -> None:
        """Kill the process and all that it started."""
        self.is_lost = True
        if self._process is not None:
            kill_group(self._process.pid)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left of the process."""
        return self.is_lost and (self._process is None or self._process.returncode is not None)

    async def close(self) -> None:
        """Kill the process, and wait until nothing of it is left."""
        self.kill()
        await self.last_words()
        if self._transport is not None:
            self._transport.close()
        elif self._socket is not None:
            self._socket.close()

    async def last_words(self) -> str:
        """Once the process has ended or is killed: how it ended, and the error that it or a file printed last."""
        if self._process is None:
            return ""
        with suppress(TimeoutError):
            async with asyncio.timeout(_BURIAL_S):
                status = await self._process.wait()
                kill_group(self._process.pid)  # what it started may hold its stderr open
                if self._draining is not None:
                    await self._draining
                said = last_error(b"".join(self._said))
                how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
                return f"{how}: {said}" if said else how
        return "did not exit"

    # asyncio's side

    def data_received(self, data: bytes) -> None:
        """Answers, whole or in pieces."""
        self._silent_ticks = 0
        *lines, rest = data.split(b"\n")
        if lines and self._pieces:
            lines[0] = b"".join([*self._pieces, lines[0]])
            self._pieces = []
        if rest:
            self._pieces.append(rest)
        for line in lines:
            self._receive(line)

    def connection_lost(self, error: Exception | None) -> None:
        """The process has ended, or let go of the line: nobody is answered any more."""
        del error
        self.is_lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(LostError())
        if not self._ready.done():
            self._ready.set_exception(LostError())
            self._ready.exception()  # nobody may be waiting for it any more

    # the line

    def _receive(self, line: bytes) -> None:
        answer = _decode(line)
        if answer is None:
            self.kill()
            return
        if answer.id == _PING:
            self._pinged = False
        elif answer.id == _READY and not self._ready.done():
            self._ready.set_result(None)
        future = self._waiting.get(answer.id)
        if future is not None and not future.done():
            future.set_result(answer)

    def _send(self, line: bytes) -> None:
        if not self._outbox:
            self._loop.call_soon(self._flush)
        self._outbox.append(line)

    def _flush(self) -> None:
        if self._transport is not None and not self.is_lost:
            self._transport.write(b"".join(self._outbox))
        self._outbox.clear()

    async def _drain(self, process: Process) -> None:
        while process.stderr is not None and (piece := await process.stderr.read(4096)):
            self._said.append(piece)

    # watching for a process that is blocked

    def _watch(self) -> None:
        if self._patience_s is not None and not self._watching:
            self._watching = True
            self._silent_ticks = 0
            self._loop.call_later(self._patience_s / 4, self._tick)

    def _tick(self) -> None:
        # ticks are counted rather than seconds, so that a pause of our own does not look like one of the process
        self._silent_ticks += 1
        if self.is_lost or not (self._waiting or self._pinged):
            self._watching = False
            return
        if self._silent_ticks >= 4:
            self.kill()
        elif self._silent_ticks == 2:
            self._ping()
        self._loop.call_later((self._patience_s or 1) / 4, self._tick)

    def _ping(self) -> None:
        if not self.is_lost:
            self._pinged = True
            self._send(b'{"id":%d}\n' % _PING)


def _decode(line: bytes) -> Answer | None:
    """The answer in a line; None for what the other side cannot have meant to write."""
    try:
        answer: Answer = msgspec.json.decode(line, type=Answer)
    except (msgspec.DecodeError, RecursionError):
        return None
    return answer
