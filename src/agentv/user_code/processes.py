"""Other programs, run in their own process groups with limits on time and output, and always cleaned up."""

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
"""Most bytes that a program can print before it is killed (SPEC section 12)."""

STDERR_KEPT = 65_536
"""Number of last bytes of stderr that are kept. It is a log, so its size is not limited."""

GRACE_S = 0.5
"""Seconds for a program's children to finish their output after the program itself has ended."""

KILL_TIMEOUT_S = 5.0
"""Seconds to wait for a killed program to end."""

_CHUNK = 65_536
_POLL_S = 0.05
_EXIT_POLL_S = 0.005
_ROUNDS = 500
_ROUND_S = 0.002
_SPINS = 20
_TRANSIENT = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY})
_alive: set[int] = set()
_marks: dict[int, bytes] = {}
"""Process of `start_program` → the mark of its descendants."""


class Finished(Struct, frozen=True):
    """The result of a program that ended by itself. `status` is negative if a signal killed it: -9 for SIGKILL."""

    status: int
    stdout: bytes
    stderr: bytes


async def run_program(
    command: Command, *, stdin: bytes, env: Mapping[str, str], timeout_s: float, limit: int = OUTPUT_LIMIT
) -> Finished | Failure:
    """Run a program with this input, and collect its whole stdout and the last STDERR_KEPT bytes of its stderr.

    Its process group is killed when it ends, after `timeout_s` seconds, when it prints more than `limit` bytes, and
    when the caller is cancelled. In the process of a command, its descendants with other sessions are killed too
    (`orphans.py`). Children that outlive the program and keep its output open have GRACE_S seconds to finish.

    Returns:
        The result, or a Failure with the code `cannot-start`, `timeout` or `output-too-large`.
    """
    from agentv.user_code.orphans import marked

    environment, mark = marked(env)
    try:
        process = Popen(  # noqa: ASYNC220  # with an await here, a cancelled caller could lose the process
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
        with suppress(TimeoutError):  # do not wait for a process that the kernel cannot end
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await _reaped(process)
        await _end_leftovers(mark)
    if streams.stdout.overfull:
        return Failure("output-too-large", f"{_name(command)} printed more than {limit / 1_000_000:g} MB")
    return Finished(status, bytes(streams.stdout.read), bytes(streams.stderr.read))


async def start_program(
    command: Command, *, env: Mapping[str, str], stdout: int = PIPE, line_limit: int = 1 << 16
) -> Process:
    """Start a program as the leader of a new process group, with pipes for its standard streams.

    Args:
        command: the command line and working directory.
        env: its whole environment.
        stdout: a file descriptor to use instead of a pipe for stdout.
        line_limit: longest line in bytes that can be read from its streams.

    Raises:
        OSError: the program cannot be started.
        ValueError: an argument contains a NUL byte.
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
    """Send SIGINT to a program of `start_program`, as Ctrl-C does, and wait at most `wait_s` seconds for its end."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGINT)
    await _exited(process, wait_s)


async def end_program(process: Process, grace_s: float) -> None:
    """End a program of `start_program` and its descendants with SIGTERM, and kill them after `grace_s` seconds.

    If the caller is cancelled, they are killed at once.
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
    """Wait until a program has exited. `Process.wait` would also wait for its pipes, which children can keep open."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while process.returncode is None:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(_EXIT_POLL_S)


async def _started(starting: Coroutine[Any, Any, Process]) -> Process:
    """Wait for the start of a process, and kill it if the caller is cancelled.

    If a start is cancelled at certain moments, asyncio does not kill the program, and waits for its end for ever.
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
    """Kill the process group of a program that this module started."""
    _alive.discard(leader)
    _marks.pop(leader, None)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def kill_all() -> None:
    """Kill all programs that are still running, at the end of an interrupted run."""
    for leader in tuple(_alive):
        kill_group(leader)


async def _end_leftovers(mark: bytes) -> None:
    """Kill a program's orphans, and then theirs, until none are left."""
    from agentv.user_code.orphans import end_orphans

    for _ in range(_ROUNDS):
        if not end_orphans(mark, _alive):
            return
        await asyncio.sleep(_ROUND_S)


def _name(command: Command) -> str:
    """Return a program's name for messages, without its arguments, which may contain a whole prompt or a secret."""
    return "the command" if command.shell is not None else Path(command.argv[0]).name


async def _reaped(process: Popen[bytes]) -> int:
    """Wait for the exit status of a program that has ended or is about to."""
    for attempt in count():
        status = process.poll()
        if status is not None:
            return status
        await asyncio.sleep(0 if attempt < _SPINS else min(_POLL_S, 0.0005 * 2.0 ** (attempt - _SPINS)))
    raise AssertionError("counts for ever")


class _Streams:
    """The pipes of one program, read and written by callbacks of the event loop, without tasks."""

    def __init__(self, process: Popen[bytes], stdin: bytes, limit: int) -> None:
        self._process = process
        self._printed = asyncio.get_running_loop().create_future()
        self.stdout = _Sink(process.stdout, self._stopped, limit=limit)
        self.stderr = _Sink(process.stderr, self._stopped, kept=STDERR_KEPT)
        self.stdin = _Source(process.stdin, stdin)

    async def until_ended(self) -> int:
        """Wait until the program has ended and its output is read, or is too large. Return the exit status."""
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
        """Close the pipes."""
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()


class _Sink:
    """A pipe that is read to its end or until more than `limit` bytes. Only the last `kept` bytes are stored."""

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
        """Whether reading has ended."""
        return self._pipe is None

    @property
    def overfull(self) -> bool:
        """Whether the program printed more than `limit` bytes."""
        return len(self.read) > self._limit

    def _ready(self, pipe: IO[bytes]) -> None:
        try:
            chunk = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:  # a spurious wake-up
            return
        self.read += chunk
        if len(self.read) > self._kept:
            del self.read[: -self._kept]
        if not chunk or self.overfull:
            self.close()
            self._stopped()

    def close(self) -> None:
        """Stop reading."""
        if self._pipe is not None:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._pipe.close()
            self._pipe = None


class _Source:
    """A pipe that is written, and closed once everything is written or the program has closed its end."""

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
        except OSError:  # the program need not read its input
            self.close()
            return
        self._left = self._left[written or 0 :]
        if not self._left:
            self.close()

    def close(self) -> None:
        """Stop writing."""
        if self._pipe is not None:
            asyncio.get_running_loop().remove_writer(self._pipe.fileno())
            self._pipe.close()
            self._pipe = None
