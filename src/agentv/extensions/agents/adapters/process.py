"""The process of an agent that talks in lines on its standard streams: started confined, bounded, ended."""

from __future__ import annotations

import asyncio
import shlex
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agentv.model.values.response import Failure
from agentv.ports import TargetRequest
from agentv.registry.fields import Command
from agentv.user_code.processes import STDERR_KEPT, end_program, interrupt_program, start_program

GRACE_S = 5.0
"""Seconds between SIGTERM and SIGKILL."""

INTERRUPT_S = 2.0
"""Seconds between SIGINT and SIGTERM."""

STREAM_LIMIT = 64_000_000
"""Bytes that an agent may print in all."""

LINE_LIMIT = 16_000_000
"""Bytes of one line."""

_CHUNK = 1 << 16
_LOG_S = 0.2


class TooLargeStreamError(Exception):
    """The agent printed more than it may."""


class AgentProcess:
    """A started agent.

    Attributes:
        partial: what follows the last end of a line, once there are no more.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self.partial = b""
        self._read = 0
        self._stderr = bytearray()
        self._log = asyncio.ensure_future(self._keep_stderr())
        self._ending: asyncio.Future[None] | None = None
        self._feeding: asyncio.Future[None] | None = None

    @property
    def stderr(self) -> bytes:
        """The last that it printed there."""
        return bytes(self._stderr)

    async def line(self) -> bytes | None:
        """The next line of stdout, without its end; None: there is no more. The last one may lack its end (`partial`).

        Raises:
            TooLargeStreamError: it printed too much.
        """
        stdout = self._process.stdout
        try:
            line = b"" if stdout is None else await stdout.readline()
        except ValueError as error:  # one longer than `LINE_LIMIT`
            raise self._overfull() from error
        self._read += len(line)
        if self._read > STREAM_LIMIT:
            raise self._overfull()
        if line.endswith(b"\n"):
            return line[:-1]
        self.partial = line
        return None

    def discount(self, size: int) -> None:
        """Let bytes that were read not count as printed."""
        self._read -= size

    def _overfull(self) -> TooLargeStreamError:
        """The error of too much output. Its pipe is closed: the end of a program is seen after those of its pipes."""
        pipe = self._process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]  # noqa: SLF001
        pipe.close()
        return TooLargeStreamError()

    async def write(self, line: bytes) -> None:
        """Send a line.

        Raises:
            ConnectionError: it reads no more.
        """
        stdin = self._process.stdin
        if stdin is None or stdin.is_closing():
            raise ConnectionError("the agent reads no more")
        stdin.write(line + b"\n")
        await stdin.drain()

    def feed(self, text: bytes) -> None:
        """Write all of its standard input, in the background, and close it. It need not read it."""
        self._feeding = asyncio.ensure_future(self._feed(text))

    async def _feed(self, text: bytes) -> None:
        stdin = self._process.stdin
        if stdin is None:
            return
        with suppress(OSError):
            stdin.write(text)
            await stdin.drain()
        stdin.close()

    async def _keep_stderr(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (chunk := await stderr.read(_CHUNK)):
            self._stderr += chunk
            del self._stderr[:-STDERR_KEPT]

    async def wait(self, timeout_s: float | None) -> int | None:
        """Its exit status, if it ends by itself in that time; None: however long that takes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        return self._process.returncode

    async def interrupt(self, wait_s: float = INTERRUPT_S) -> None:
        """Have it end as Ctrl-C does, so that it says what it has done; what it prints can still be read."""
        await interrupt_program(self._process, wait_s)

    async def end(self, grace_s: float = GRACE_S) -> None:
        """End it, and all that it started; at once where it has ended already. Two calls end it once."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end(grace_s))
        try:
            await asyncio.shield(self._ending)
        except asyncio.CancelledError:
            self._ending.cancel()  # which kills it
            await asyncio.wait([self._ending])
            raise

    async def _end(self, grace_s: float) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await end_program(self._process, grace_s)
        finally:
            with suppress(TimeoutError):  # a pipe that somebody else holds open is not waited for
                async with asyncio.timeout(min(_LOG_S, grace_s / 4)):
                    await asyncio.shield(self._log)
            self._log.cancel()
            if self._feeding is not None:
                self._feeding.cancel()
            transport = getattr(self._process, "_transport", None)
            if transport is not None:
                transport.close()


async def start_argv(
    argv: tuple[str, ...], request: TargetRequest, cwd: str, env: Mapping[str, str] | None = None
) -> AgentProcess | Failure:
    """Start an agent's program by its command line, confined by the sandbox of the request.

    Args:
        argv: program and arguments.
        request: of the trial.
        cwd: absolute.
        env: its complete environment; None: as `environment_of`.
    """
    if request.gateway is not None:
        argv = tuple(map(request.gateway.filled, argv))
    confined = Command(argv if request.sandbox is None else tuple(request.sandbox.argv(argv, cwd)), cwd=cwd)
    try:
        env = environment_of(request) if env is None else env
        return AgentProcess(await start_program(confined, env=env, line_limit=LINE_LIMIT))
    except (OSError, ValueError) as error:
        return Failure("cannot-start", f"cannot start {argv[0]}: {error}")


def argv_of(command: Command) -> tuple[str, ...]:
    """The words of a command that runs in the workspace: a file beside the eval file becomes an absolute path."""
    words = command.argv
    if command.shell is not None:
        plain = not set(command.shell) & set("|&;<>()$`*?[#~=%{}\n")
        words = tuple(shlex.split(command.shell)) if plain else ("/bin/sh", "-c", command.shell)
        if not plain:
            return words
    return tuple(_placed(word, command.cwd, program=place == 0) for place, word in enumerate(words))


def _placed(word: str, directory: str, *, program: bool) -> str:
    looks_like_file = "/" in word or ("." in word and not program)
    path = Path(directory, word)
    with suppress(OSError, ValueError):  # no name of a file
        if looks_like_file and not Path(word).is_absolute() and path.is_file():
            return str(path)
    return word


def environment_of(request: TargetRequest) -> dict[str, str]:
    """The environment of an agent's programs: that of the request, with the HOME of the sandbox."""
    sandbox = request.sandbox
    return {**request.env, **({} if sandbox is None or not sandbox.home else {"HOME": sandbox.home})}
