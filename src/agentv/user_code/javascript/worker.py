"""One JavaScript process that grades, and its channel: requests out, replies in, each a JSON object (`worker.mjs`)."""

from __future__ import annotations

import asyncio
import socket
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

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


class Program:
    """One process group. It can be killed before it is started, and is then killed as soon as it is."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._printed: deque[bytes] = deque(maxlen=20)
        self._reading: asyncio.Task[None] | None = None
        self._is_killed = False

    async def start(self, argv: tuple[str, ...], env: Mapping[str, str], channel: int) -> None:
        """Start the process.

        Args:
            argv: the words of its command line.
            env: its whole environment.
            channel: the descriptor that it gets as descriptor 4.

        Raises:
            OSError, ValueError: it does not start.
        """
        command = Command(argv=("/bin/sh", "-c", _SHELL, "agentv", *argv))
        self._process = await start_program(command, env=env, stdout=channel)
        if self._is_killed:
            self.kill()
        self._reading = asyncio.get_running_loop().create_task(self._read(self._process))

    def kill(self) -> None:
        """Kill the process and all that it started."""
        self._is_killed = True
        if self._process is not None:
            kill_group(self._process.pid)

    @property
    def has_ended(self) -> bool:
        """Whether no process is left; one that was not started has ended too."""
        return self._process is None or self._process.returncode is not None

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


class LineReceiver(Protocol):
    """What a channel reports to."""

    def on_data(self) -> None:
        """Some bytes arrived, a whole line or not."""

    def on_line(self, line: bytes) -> None:
        """A line arrived."""

    def on_lost(self) -> None:
        """The other side closed the connection."""


class LineChannel(asyncio.Protocol):
    """One end of a connection that carries lines both ways. Belongs to one event loop.

    Args:
        connection: a connected socket, which the channel closes.
        receiver: object that is notified of lines and of the end.
    """

    def __init__(self, connection: socket.socket, receiver: LineReceiver) -> None:
        self._connection = connection
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outbox: list[bytes] = []
        self._pieces: list[bytes] = []

    async def open(self) -> None:
        """Begin to receive."""
        self._transport, _ = await self._loop.create_connection(lambda: self, sock=self._connection)

    def send(self, line: bytes) -> None:
        """Send a line soon; lines of one turn of the event loop are one write."""
        if not self._outbox:
            self._loop.call_soon(self._flush)
        self._outbox.append(line)

    def close(self) -> None:
        """Close the connection."""
        (self._transport or self._connection).close()

    def data_received(self, data: bytes) -> None:
        """Split what arrived into lines; asyncio calls this."""
        self._receiver.on_data()
        *lines, rest = data.split(b"\n")
        if lines and self._pieces:
            lines[0] = b"".join([*self._pieces, lines[0]])
            self._pieces = []
        if rest:
            self._pieces.append(rest)
        for line in lines:
            self._receiver.on_line(line)

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end; asyncio calls this."""
        del error
        self._receiver.on_lost()

    def _flush(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._outbox))
        self._outbox.clear()


_WORKER = str(Path(__file__).parent / "worker.mjs")
_START_S = 30.0
_READY, _PING = 0, -1


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


class WorkerProcess:
    """A process that grades, and the requests that it has not answered yet.

    Args:
        patience_s: seconds of silence, a ping unanswered, after which the process is taken to be blocked and is
            killed; None: it may be busy for as long as it likes.
    """

    def __init__(self, patience_s: float | None) -> None:
        self._program = Program()
        self._channel: LineChannel | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending: dict[int, asyncio.Future[WorkerReply]] = {}
        self._requests = 0
        self._is_pinged = False
        self._watchdog = Watchdog(patience_s, self._is_waiting, self._ping, self.kill)
        self.is_lost = False

    async def start(self, argv: tuple[str, ...], env: Mapping[str, str]) -> None:
        """Start the process and wait until it can grade.

        Raises:
            LostError: it does not start; the text says what it printed.
        """
        ours, theirs = socket.socketpair()
        self._channel = LineChannel(ours, self)
        is_ready = False
        try:
            with theirs:
                await self._program.start((*argv, _WORKER), env, theirs.fileno())
            await self._channel.open()
            async with asyncio.timeout(_START_S):
                await self._ready
            is_ready = True
        except (OSError, ValueError, LostError) as error:
            self.kill()
            raise LostError(f"{argv[0]} failed to start: {await self.last_words() or error}") from error
        finally:
            if not is_ready:
                self.kill()

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
        future: asyncio.Future[WorkerReply] = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        self._send(b'{"id":%d,%s\n' % (number, request))
        self._watchdog.watch()
        try:
            return await future
        except asyncio.CancelledError:
            self._ping()  # the request that is given up may be what blocks the process
            self._watchdog.watch()
            raise
        finally:
            self._pending.pop(number, None)

    def kill(self) -> None:
        """Kill the process and all that it started."""
        self.is_lost = True
        self._program.kill()

    @property
    def is_over(self) -> bool:
        """Whether the process and all its children have ended."""
        return self.is_lost and self._program.has_ended

    async def close(self) -> None:
        """Kill the process, and wait until nothing of it is left."""
        self.kill()
        await self.last_words()
        if self._channel is not None:
            self._channel.close()

    async def last_words(self) -> str:
        """Once the process has ended or is killed: how it ended, and the error that it or a file printed last."""
        return await self._program.last_words()

    # what the channel reports

    def on_data(self) -> None:
        """The process is not blocked."""
        self._watchdog.on_data()

    def on_line(self, line: bytes) -> None:
        """Read a reply; any other line was printed by a file, and ends the process."""
        reply = _decode(line)
        if reply is None:
            self.kill()
            return
        if reply.id == _PING:
            self._is_pinged = False
        elif reply.id == _READY and not self._ready.done():
            self._ready.set_result(None)
        future = self._pending.get(reply.id)
        if future is not None and not future.done():
            future.set_result(reply)

    def on_lost(self) -> None:
        """The process has ended, or closed its end: no request is answered any more."""
        self.is_lost = True
        for future in self._pending.values():
            if not future.done():
                future.set_exception(LostError())
        if not self._ready.done():
            self._ready.set_exception(LostError())
            self._ready.exception()  # nobody may be waiting for it any more

    def _is_waiting(self) -> bool:
        return not self.is_lost and bool(self._pending or self._is_pinged)

    def _ping(self) -> None:
        if not self.is_lost:
            self._is_pinged = True
            self._send(b'{"id":%d}\n' % _PING)

    def _send(self, line: bytes) -> None:
        if self._channel is not None:
            self._channel.send(line)


def _decode(line: bytes) -> WorkerReply | None:
    """The reply in a line; None for what the other side cannot have meant to write."""
    try:
        reply: WorkerReply = msgspec.json.decode(line, type=WorkerReply)
    except (msgspec.DecodeError, RecursionError):
        return None
    return reply


_TICKS = 4
"""Ticks of silence after which a process is blocked; halfway it is pinged."""


class Watchdog:
    """Watches one process while an answer of it is expected.

    Args:
        patience_s: seconds of silence after which the process is blocked; None: it may be busy for as long as it likes.
        is_waiting: whether an answer is expected. Without one the watch ends.
        ping: asks the process for a sign of life.
        kill: ends a process that gave none.
    """

    def __init__(
        self,
        patience_s: float | None,
        is_waiting: Callable[[], bool],
        ping: Callable[[], None],
        kill: Callable[[], None],
    ) -> None:
        self._tick_s = None if patience_s is None else patience_s / _TICKS
        self._is_waiting = is_waiting
        self._ping = ping
        self._kill = kill
        self._silent_ticks = 0
        self._is_watching = False

    def watch(self) -> None:
        """Watch from now on, until no answer is expected."""
        if self._tick_s is not None and not self._is_watching:
            self._is_watching = True
            self._silent_ticks = 0
            asyncio.get_running_loop().call_later(self._tick_s, self._tick, self._tick_s)

    def on_data(self) -> None:
        """The process is not silent."""
        self._silent_ticks = 0

    def _tick(self, tick_s: float) -> None:
        # ticks are counted rather than seconds, so that a pause of our own does not look like one of the process
        self._silent_ticks += 1
        if not self._is_waiting():
            self._is_watching = False
            return
        if self._silent_ticks >= _TICKS:
            self._kill()
        elif self._silent_ticks == _TICKS // 2:
            self._ping()
        asyncio.get_running_loop().call_later(tick_s, self._tick, tick_s)
