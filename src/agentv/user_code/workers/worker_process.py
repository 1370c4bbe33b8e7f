"""The parent's side of a worker: its process, its pending calls, and its exit status."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from threading import Thread
from typing import Any, Self

import msgspec

from agentv.ports import Handler
from agentv.user_code.excerpts import exit_text
from agentv.user_code.workers.messages import (
    CLOSED_STATUS,
    LENGTH,
    LONGEST,
    Answer,
    Ask,
    Begin,
    Call,
    Cancel,
    Close,
    Failed,
    Ready,
    Reply,
    Unsendable,
    Value,
    Withdrawn,
    packed,
    unpacker,
)

EXIT_S = 3.0
"""Seconds for threads and exit handlers of user code after the end of the run."""

CLEAN_UP_S = 0.5
"""Seconds for a cancelled coroutine to clean up before its worker is retired, and to relay the last output."""

_PROGRAM = "import sys; from agentv.user_code.workers.child import main; main(int(sys.argv[1]))"
_CHUNK = 1 << 18


class LostError(Exception):
    """The worker ended before it answered. `how` is for instance `killed by SIGSEGV`."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


class WithdrawnError(Exception):
    """The worker returned the call without having begun it."""


class WorkerProcess:
    """A worker. It belongs to the event loop that created it.

    Attributes:
        blocked_at: the line that blocked its event loop when calls were last withdrawn; empty if it was not blocked.
        retired: whether it accepts no new calls and ends after its pending ones.
    """

    def __init__(self, begin: Begin, env: Mapping[str, str], on_loaded: Callable[[list[str]], None]) -> None:
        self._on_loaded = on_loaded
        self._loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        for one in (ours, theirs):
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                with suppress(OSError):
                    one.setsockopt(socket.SOL_SOCKET, option, _CHUNK)
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001  # as multiprocessing does
        if sys.dont_write_bytecode:  # may be set without the flag
            flags = [*flags, "-B"]
        words = (sys.executable, *flags, "-c", _PROGRAM, str(theirs.fileno()))
        self._printed = printed = None if begin.debug else OutputRelay()
        with theirs, printed or nullcontext():
            try:
                self._process = subprocess.Popen(
                    words,
                    stdin=None if begin.debug else subprocess.DEVNULL,
                    stdout=None if printed is None else printed.to,
                    stderr=None if printed is None else printed.to,
                    env=dict(env),
                    pass_fds=(theirs.fileno(),),
                    start_new_session=not begin.debug,
                )
            except OSError:
                ours.close()
                raise
        self._connection = ours
        self._decoder = unpacker(Reply)
        self._inbox = bytearray()
        self._outbox = bytearray()
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._handlers: dict[int, Handler] = {}
        self._cancelled: dict[int, asyncio.TimerHandle] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._ended = self._loop.create_future()
        self._ready: asyncio.Future[None] | None = self._loop.create_future()
        self._status: int | None = None
        self.retired = False
        self.blocked_at = ""
        self._loop.add_reader(ours, self._readable)
        if printed is not None:
            printed.start()
        self._waiting = Thread(target=self._wait, name="agentv-worker", daemon=True)
        self._waiting.start()
        self.send(begin)

    @property
    def has_ended(self) -> bool:
        """Whether its process has ended."""
        return self._status is not None

    @property
    def is_idle(self) -> bool:
        """Whether it has no pending calls."""
        return not self._calls and not self._cancelled

    @property
    def load(self) -> int:
        """Number of pending calls."""
        return len(self._calls)

    async def started(self) -> None:
        """Wait until the process is ready for calls or has ended."""
        if self._ready is not None:
            await asyncio.shield(self._ready)

    @property
    def is_starting(self) -> bool:
        """Whether it is not ready for calls yet."""
        return self._ready is not None

    def _become_ready(self) -> None:
        if self._ready is not None:
            self._ready.set_result(None)
            self._ready = None

    async def call(self, call: Call, handler: Handler) -> Value | Failed | Unsendable:
        """Make a call and return its reply. `handler` serves the calls that it makes to this process.

        Raises:
            LostError: the process ended before it replied.
            WithdrawnError: a `Withdraw` was sent before the call had begun.
            TypeError, RecursionError: the payload cannot be sent.
        """
        if self.has_ended:
            raise LostError(self.how_it_ended())
        future: asyncio.Future[Value | Failed | Unsendable] = self._loop.create_future()
        body = packed(call)
        self._calls[call.id] = future
        self._handlers[call.id] = handler
        self._write(body)
        try:
            return await future
        except asyncio.CancelledError:
            if call.id in self._calls and not self.has_ended:
                self.send(Cancel(call.id))
                self._cancelled[call.id] = self._loop.call_later(CLEAN_UP_S, self.retire)
            raise
        finally:
            self._calls.pop(call.id, None)
            self._handlers.pop(call.id, None)

    def retire(self) -> None:
        """Accept no new calls, and end after the pending ones. Cancelled calls are not waited for."""
        self.retired = True
        if not self._calls:
            self.kill()

    def kill(self) -> None:
        """Kill the process and its process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            self._process.kill()

    def end(self) -> None:
        """Kill the process, wait for its end and its output, and close the connection."""
        self.kill()
        self._waiting.join(EXIT_S)
        self._end(self._process.wait())

    async def close(self) -> None:
        """Ask the process to clean up and exit, and kill it if that takes too long."""
        if not self.has_ended:
            self.send(Close())
            busy = bool(self._calls or self._cancelled)
            await asyncio.wait((self._ended,), timeout=CLEAN_UP_S if busy else EXIT_S)
        self.kill()
        await asyncio.wait((self._ended,), timeout=EXIT_S)
        for task in self._answering:
            task.cancel()

    def how_it_ended(self) -> str:
        """Describe how the process ended: `exit 3`, `killed by SIGSEGV`."""
        if self._status == CLOSED_STATUS:
            return "closed the socket of its process"
        return exit_text(self._status or 0)

    def send(self, message: msgspec.Struct) -> None:
        """Send a message without waiting for it."""
        self._write(packed(message))

    def _write(self, body: bytes) -> None:
        if not self._outbox:
            try:
                sent = self._connection.send(body)
            except BlockingIOError:
                sent = 0
            except OSError:  # the process has ended, and `_end` will be called
                return
            if sent == len(body):
                return
            body = body[sent:]
            self._loop.add_writer(self._connection, self._writable)
        self._outbox += body

    def _writable(self) -> None:
        try:
            sent = self._connection.send(memoryview(self._outbox)[:_CHUNK])
        except BlockingIOError:
            return
        except OSError:
            self._outbox.clear()
        else:
            del self._outbox[:sent]
        if not self._outbox:
            self._loop.remove_writer(self._connection)

    def _readable(self) -> bool:
        """Read the data that has arrived. Return whether there may be more."""
        try:
            data = self._connection.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._connection)
            return False
        self._inbox += data
        self._take_messages()
        return True

    def _take_messages(self) -> None:
        inbox, at = self._inbox, 0
        while len(inbox) >= at + LENGTH:
            size = int.from_bytes(inbox[at : at + LENGTH], "big")
            end = at + LENGTH + size
            if len(inbox) < end and size <= LONGEST:
                break
            try:
                message = self._decoder.decode(memoryview(inbox)[at + LENGTH : end])
            except (msgspec.DecodeError, RecursionError):  # user code has written to the socket
                self.kill()
                return
            self._take(message)
            at = end
        if at:
            del inbox[:at]

    def _take(self, message: Reply) -> None:
        if isinstance(message, Ready):
            self._become_ready()
        elif isinstance(message, Withdrawn):
            self.blocked_at = message.blocked
            for number in message.ids:
                self._settle(number, WithdrawnError())
        elif isinstance(message, Ask):
            task = self._loop.create_task(self._answer(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        else:
            if isinstance(message, Value | Failed) and message.loaded:
                self._on_loaded(message.loaded)
            self._settle(message.id, message)

    def _settle(self, number: int, outcome: object) -> None:
        timer = self._cancelled.pop(number, None)
        if timer is not None:
            timer.cancel()
        future = self._calls.get(number)
        if future is not None and not future.done():
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
            self._calls.pop(number)
        if self.retired and not self._calls:
            self.kill()

    async def _answer(self, ask: Ask) -> None:
        handler = self._handlers.get(ask.call)
        if handler is None:  # the call has ended
            return
        try:
            self.send(Answer(ask.id, await handler(ask.name, ask.arguments)))
        except LookupError as error:
            self.send(Answer(ask.id, None, str(error)))
        except Exception as error:  # noqa: BLE001  # user code may ask for anything, and waits for a reply
            self.send(Answer(ask.id, None, f"{ask.name}: {type(error).__name__}: {error}"))

    def _wait(self) -> None:
        """Wait for the process on a thread. Its forks may keep the connection open, so its end of file is no sign."""
        status = self._process.wait()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # processes that it started
        if self._printed is not None:
            self._printed.finish(CLEAN_UP_S)
        with suppress(RuntimeError):  # the loop is closed, so no call is pending
            self._loop.call_soon_threadsafe(partial(self._end, status))

    def _end(self, status: int) -> None:
        if self._status is not None:
            return
        while self._readable():  # replies sent before the end
            pass
        self._status = status
        self._loop.remove_reader(self._connection)
        self._loop.remove_writer(self._connection)
        self._connection.close()
        for timer in self._cancelled.values():
            timer.cancel()
        self._cancelled.clear()
        for future in self._calls.values():
            if not future.done():
                future.set_exception(LostError(self.how_it_ended()))
        self._calls.clear()
        self._become_ready()
        if not self._ended.done():
            self._ended.set_result(None)


_PIPE_CHUNK = 1 << 16
_LONGEST = 1 << 20
"""Longest line in bytes that is relayed. Secrets are redacted in whole lines, so longer ones are omitted."""


class OutputRelay:
    """A pipe for the stdout and stderr of a process, and a thread that relays its output to stderr.

    It reads no faster than stderr accepts, so that no output accumulates. The process is started in its `with` block.

    Attributes:
        to: the write end of the pipe, for the process.
    """

    def __init__(self) -> None:
        self._from, self.to = os.pipe()
        self._thread = Thread(target=self._relay, name="agentv-printed", daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.to)
        if error[0] is not None:
            os.close(self._from)

    def start(self) -> None:
        """Start to relay the output."""
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Wait until the rest of the output is relayed, after the process has ended.

        The wait is limited, because processes that it left running may keep the pipe open.
        """
        self._thread.join(seconds)

    def _relay(self) -> None:
        held, skipping = b"", False
        while chunk := os.read(self._from, _PIPE_CHUNK):
            end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
            if end and skipping:
                cut = len(chunk.splitlines(keepends=True)[0])
                chunk, end, skipping = chunk[cut:], end - cut, False
            if end:
                _print(held + chunk[:end])
                held = b""
            if not skipping:
                held += chunk[end:]
            if len(held) > _LONGEST:
                _print(b"[a printed line of more than 1 MiB was left out]\n")
                held, skipping = b"", True
        if held:
            _print(held + b"\n")
        os.close(self._from)


def _print(lines: bytes) -> None:
    with suppress(OSError, ValueError, AttributeError):  # stderr is closed, or its reader is
        sys.stderr.write(lines.decode(errors="backslashreplace"))
        sys.stderr.flush()
