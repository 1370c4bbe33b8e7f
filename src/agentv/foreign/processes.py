"""Other programs: run in a process group of their own, bounded in time and output, never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from agentv.model.response import Failure
from agentv.registry.fields import Command

OUTPUT_LIMIT = 10_000_000
"""Bytes that a program may print before it is stopped (SPEC section 12)."""

_CHUNK = 65_536
_alive: set[int] = set()


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that ended by itself."""

    status: int
    stdout: bytes
    stderr: bytes


async def run_program(
    command: Command, *, stdin: bytes, env: Mapping[str, str], timeout_s: float, limit: int = OUTPUT_LIMIT
) -> Finished | Failure:
    """Start a program, feed it, and collect what it prints.

    Its whole process group is killed when it ends, when `timeout_s` seconds are over, when it prints more than
    `limit` bytes, and when the caller is cancelled: nothing that it started is left.

    Returns:
        The ended program, or a Failure with code `cannot-start`, `timeout` or `output-too-large`.
    """
    try:
        process = await start_program(command, env=env)
    except (OSError, ValueError) as error:
        return Failure("cannot-start", f"cannot start {command}: {error}")
    try:
        async with asyncio.timeout(timeout_s):
            stdout, stderr, _ = await asyncio.gather(
                _collect(process.stdout, limit), _collect(process.stderr, limit), _feed(process, stdin)
            )
            status = await process.wait()
    except TimeoutError:
        return Failure("timeout", f"no answer after {timeout_s:g} s: {command}", retryable=True)
    except _TooLargeError:
        return Failure("output-too-large", f"printed more than {limit / 1_000_000:g} MB: {command}")
    finally:
        kill_group(process.pid)
        await _reap(process)
    return Finished(status, stdout, stderr)


async def start_program(command: Command, *, env: Mapping[str, str]) -> Process:
    """Start a program as the leader of a new process group, its three streams piped.

    Raises:
        OSError: it cannot be started.
        ValueError: an argument holds a NUL byte.
    """
    options = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, "cwd": command.cwd or None, "env": dict(env)}
    if command.shell is not None:
        process = await asyncio.create_subprocess_shell(command.shell, start_new_session=True, **options)  # type: ignore[arg-type]
    else:
        process = await asyncio.create_subprocess_exec(*command.argv, start_new_session=True, **options)  # type: ignore[arg-type]
    _alive.add(process.pid)
    return process


def kill_group(leader: int) -> None:
    """Kill a program that `start_program` started, and all that it started."""
    _alive.discard(leader)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def kill_all() -> None:
    """Kill every program that is still alive: the last thing that an interrupted run does."""
    for leader in tuple(_alive):
        kill_group(leader)


class _TooLargeError(Exception):
    """A program printed more than it may."""


async def _collect(stream: asyncio.StreamReader | None, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise _TooLargeError
    return b"".join(chunks)


async def _feed(process: Process, text: bytes) -> None:
    if process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):  # it need not read what it is told
        process.stdin.write(text)
        await process.stdin.drain()
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.close()
        await process.stdin.wait_closed()


async def _reap(process: Process) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            await process.wait()
