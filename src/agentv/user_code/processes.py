"""Other programs: run in a process group of their own, bounded in time and output, never left behind."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from subprocess import Popen
from typing import IO, Any

from msgspec import Struct

from agentv.model.values.response import Failure
from agentv.registry.fields import Command

OUTPUT_LIMIT = 10_000_000
"""Bytes that a program may print before it is stopped (SPEC section 12)."""

STDERR_KEPT = 65_536
"""Bytes of stderr that are kept, its last ones: it is a log, so that there is too much of it is no failure."""

GRACE_S = 0.5
"""Seconds that are left to a program's children to finish what they print, once it has ended itself."""

KILL_TIMEOUT_S = 5.0
"""Seconds for a killed program to end."""

_CHUNK = 65_536
_POLL_S = 0.05
_EXIT_POLL_S = 0.005
_ROUNDS = 500
_ROUND_S = 0.002
_SPINS = 20
_TRANSIENT = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY})
_alive: set[int] = set()
_marks: dict[int, bytes] = {}
"""Process of `start_program` → the mark of what it starts."""


class Finished(Struct, frozen=True):
    """A program that ended by itself. `status` is negative where a signal ended it: -9 for SIGKILL."""

    status: int
    stdout: bytes
    stderr: bytes


async def run_program(
    command: Command, *, stdin: bytes, env: Mapping[str, str], timeout_s: float, limit: int = OUTPUT_LIMIT
) -> Finished | Failure:
    """Start a program, feed it, and collect what it prints: stdout whole, of stderr the last `STDERR_KEPT` bytes.

    Its whole process group is killed when it ends, when `timeout_s` seconds are over, when it prints more than
    `limit` bytes, and when the caller is cancelled: nothing that it started in its session is left. What it started in
    sessions of their own is killed too, in the process of a command (`orphans.py`). Children that outlive it
    and keep its output open get `GRACE_S` seconds; what was printed until then counts.

    Returns:
        The ended program, or a Failure with code `cannot-start`, `timeout` or `output-too-large`.
    """
    from agentv.user_code.orphans import marked

    environment, mark = marked(env)
    try:
        process = Popen(  # noqa: ASYNC220  # without giving way to other tasks: a cancelled caller knows its process
            ("/bin/sh", "-c", command.shell) if command.shell is not None else command.argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            bufsize=0,
            cwd=command.cwd or None,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        transient = isinstance(error, OSError) and error.errno in _TRANSIENT
        return Failure("cannot-start", f"cannot start {_name(command)}: {error}", retryable=transient)
    _alive.add(process.pid)
    streams = _Streams(process, stdin, limit)
    try:
        async with asyncio.timeout(timeout_s):
            status = await streams.until_ended()
    except TimeoutError:
        return Failure("timeout", f"{_name(command)} did not exit within {timeout_s:g} s", retryable=True)
    finally:
        kill_group(process.pid)
        streams.close()
        with suppress(TimeoutError):  # what the kernel holds on to is not waited for
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await _reaped(process)
        await _end_leftovers(mark)
    if streams.stdout.overfull:
        return Failure("output-too-large", f"{_name(command)} printed more than {limit / 1_000_000:g} MB")
    return Finished(status, bytes(streams.stdout.read), bytes(streams.stderr.read))


async def start_program(
    command: Command, *, env: Mapping[str, str], stdout: int = PIPE, line_limit: int = 1 << 16
) -> Process:
    """Start a program as the leader of a new process group, its three streams piped.

    Args:
        command: what to start, and where.
        env: its whole environment.
        stdout: a file descriptor that takes the place of its second pipe.
        line_limit: bytes of a line that is read from its streams.

    Raises:
        OSError: it cannot be started.
        ValueError: an argument holds a NUL byte.
    """
    from agentv.user_code.orphans import marked

    environment, mark = marked(env)
    pipes = {"stdin": PIPE, "stdout": stdout, "stderr": PIPE, "limit": line_limit}
    options = {**pipes, "cwd": command.cwd or None, "env": environment}
    if command.shell is not None:
        starting = asyncio.create_subprocess_shell(command.shell, start_new_session=True, **options)  # type: ignore[arg-type]
    else:
        starting = asyncio.create_subprocess_exec(*command.argv, start_new_session=True, **options)  # type: ignore[arg-type]
    process = await _started(starting)
    _alive.add(process.pid)
    _marks[process.pid] = mark
    return process


async def interrupt_program(process: Process, wait_s: float) -> None:
    """Have a program of `start_program` end as Ctrl-C does, and wait for that. It may still run then."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGINT)
    await _exited(process, wait_s)


async def end_program(process: Process, grace_s: float) -> None:
    """End a program of `start_program` and all that it started: asked by SIGTERM, and killed after `grace_s` seconds.

    Cancelled meanwhile, it is killed at once.
    """
    from agentv.user_code.orphans import end_orphans

    mark = _marks.get(process.pid, b"")
    try:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await process.wait()
    finally:
        kill_group(process.pid)
        end_orphans(mark, {process.pid, *_alive})
    await _exited(process, KILL_TIMEOUT_S)
    await _end_leftovers(mark)


async def _exited(process: Process, within_s: float) -> None:
    """Wait until a program has exited, whoever else holds its pipes: `Process.wait` waits for those, too."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while process.returncode is None:  # noqa: ASYNC110  # nothing tells it sooner
                await asyncio.sleep(_EXIT_POLL_S)


async def _started(starting: Coroutine[Any, Any, Process]) -> Process:
    """The process, which is killed if the caller is cancelled meanwhile.

    asyncio itself does not kill a program in all the moments of its start, and then waits for its end for ever.
    """
    task = asyncio.ensure_future(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            kill_group(task.result().pid)
            with suppress(TimeoutError):
                async with asyncio.timeout(KILL_TIMEOUT_S):
                    await task.result().wait()
        raise


def kill_group(leader: int) -> None:
    """Kill a program that was started here, and all that it started."""
    _alive.discard(leader)
    _marks.pop(leader, None)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def kill_all() -> None:
    """Kill every program that is still alive: the last thing that an interrupted run does."""
    for leader in tuple(_alive):
        kill_group(leader)


async def _end_leftovers(mark: bytes) -> None:
    """Kill what a program has left behind, and what that leaves behind, until there is nothing more of it."""
    from agentv.user_code.orphans import end_orphans

    for _ in range(_ROUNDS):
        if not end_orphans(mark, _alive):
            return
        await asyncio.sleep(_ROUND_S)


def _name(command: Command) -> str:
    """What a message calls a program: its arguments may hold a whole prompt, or a secret."""
    return "the command" if command.shell is not None else Path(command.argv[0]).name


async def _reaped(process: Popen[bytes]) -> int:
    """The exit status of a program that ended, or is just about to."""
    for attempt in count():
        status = process.poll()
        if status is not None:
            return status
        await asyncio.sleep(0 if attempt < _SPINS else min(_POLL_S, 0.0005 * 2.0 ** (attempt - _SPINS)))
    raise AssertionError("counts for ever")


class _Streams:
    """The pipes of one program. The loop calls back as they get ready, which costs no task."""

    def __init__(self, process: Popen[bytes], stdin: bytes, limit: int) -> None:
        self._process = process
        self._printed = asyncio.get_running_loop().create_future()
        self.stdout = _Sink(process.stdout, self._stopped, limit=limit)
        self.stderr = _Sink(process.stderr, self._stopped, kept=STDERR_KEPT)
        self.stdin = _Source(process.stdin, stdin)

    async def until_ended(self) -> int:
        """Wait until the program is gone and all is read, or too much is; its exit status."""
        while not await self._all_printed(_POLL_S):
            status = self._process.poll()
            if status is not None:
                if not await self._all_printed(GRACE_S):
                    kill_group(self._process.pid)
                    await self._all_printed(_POLL_S)
                return status
        return 0 if self.stdout.overfull else await _reaped(self._process)

    async def _all_printed(self, within_s: float) -> bool:
        await asyncio.wait((self._printed,), timeout=within_s)
        return self._printed.done()

    def _stopped(self) -> None:
        ended = self.stdout.closed and self.stderr.closed
        if (ended or self.stdout.overfull) and not self._printed.done():
            self._printed.set_result(None)

    def close(self) -> None:
        """Let go of the pipes."""
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()


class _Sink:
    """The end of a pipe that is read, to its end or to `limit` bytes. `kept`: only so many of the last are kept."""

    def __init__(
        self, pipe: IO[bytes] | None, stopped: Callable[[], None], *, limit: int = sys.maxsize, kept: int = sys.maxsize
    ) -> None:
        self.read = bytearray()
        self._pipe, self._stopped, self._limit, self._kept = pipe, stopped, limit, kept
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
            asyncio.get_running_loop().add_reader(pipe.fileno(), self._ready, pipe)

    @property
    def closed(self) -> bool:
        """Whether there is nothing more to read."""
        return self._pipe is None

    @property
    def overfull(self) -> bool:
        """Whether more was printed than is allowed."""
        return len(self.read) > self._limit

    def _ready(self, pipe: IO[bytes]) -> None:
        try:
            chunk = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:  # nothing there after all
            return
        self.read += chunk
        if len(self.read) > self._kept:
            del self.read[: -self._kept]
        if not chunk or self.overfull:
            self.close()
            self._stopped()

    def close(self) -> None:
        """Read no more."""
        if self._pipe is not None:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._pipe.close()
            self._pipe = None


class _Source:
    """The end of a pipe that is written, and closed when all is written or the program does not want more."""

    def __init__(self, pipe: IO[bytes] | None, text: bytes) -> None:
        self._pipe = pipe
        self._left = memoryview(text)
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
            self._ready(pipe)
        if self._pipe is not None:
            asyncio.get_running_loop().add_writer(self._pipe.fileno(), self._ready, self._pipe)

    def _ready(self, pipe: IO[bytes]) -> None:
        try:
            written = pipe.write(self._left)
        except OSError:  # it need not read what it is reported
            self.close()
            return
        self._left = self._left[written or 0 :]
        if not self._left:
            self.close()

    def close(self) -> None:
        """Write no more."""
        if self._pipe is not None:
            asyncio.get_running_loop().remove_writer(self._pipe.fileno())
            self._pipe.close()
            self._pipe = None
