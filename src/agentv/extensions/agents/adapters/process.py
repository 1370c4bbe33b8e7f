"""The process of an agent that exchanges lines on its standard streams: started in a sandbox, limited and ended."""

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
"""Maximum bytes that an agent may print in total."""

LINE_LIMIT = 16_000_000
"""Maximum bytes of one line."""

_CHUNK = 1 << 16
_LOG_S = 0.2


class TooLargeStreamError(Exception):
    """The agent printed more than is allowed."""


class AgentProcess:
    """A started agent.

    Attributes:
        partial: at the end of the stream, what follows its last line break.
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
        """The last bytes that it printed on stderr."""
        return bytes(self._stderr)

    async def line(self) -> bytes | None:
        """Return the next line of stdout, or None at the end. `partial` then has what follows the last line break.

        Raises:
            TooLargeStreamError: the agent printed too much.
        """
        stdout = self._process.stdout
        try:
            line = b"" if stdout is None else await stdout.readline()
        except ValueError as error:  # a line longer than `LINE_LIMIT`
            raise self._too_much_output() from error
        self._read += len(line)
        if self._read > STREAM_LIMIT:
            raise self._too_much_output()
        if line.endswith(b"\n"):
            return line[:-1]
        self.partial = line
        return None

    def discount(self, size: int) -> None:
        """Exclude bytes that were read from `STREAM_LIMIT`."""
        self._read -= size

    def _too_much_output(self) -> TooLargeStreamError:
        """Close stdout and return the error. The process counts as ended only once its pipes are closed."""
        pipe = self._process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]  # noqa: SLF001
        pipe.close()
        return TooLargeStreamError()

    async def write(self, line: bytes) -> None:
        """Write a line to stdin.

        Raises:
            ConnectionError: the agent no longer reads.
        """
        stdin = self._process.stdin
        if stdin is None or stdin.is_closing():
            raise ConnectionError("the agent reads no more")
        stdin.write(line + b"\n")
        await stdin.drain()

    def feed(self, text: bytes) -> None:
        """Write all of stdin in the background, then close it. The agent need not read it."""
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
        """Wait for the process and return its exit status, or None after `timeout_s`. None sets no time limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        return self._process.returncode

    async def interrupt(self, wait_s: float = INTERRUPT_S) -> None:
        """Interrupt the agent as Ctrl-C does, so that it reports what it has done. Its output can still be read."""
        await interrupt_program(self._process, wait_s)

    async def end(self, grace_s: float = GRACE_S) -> None:
        """End the process and everything that it started. Concurrent calls end it only once."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end(grace_s))
        try:
            await asyncio.shield(self._ending)
        except asyncio.CancelledError:
            self._ending.cancel()  # this kills the process
            await asyncio.wait([self._ending])
            raise

    async def _end(self, grace_s: float) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await end_program(self._process, grace_s)
        finally:
            with suppress(TimeoutError):  # another process may hold the pipe open
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
    """Start an agent's program in the sandbox of the request.

    Args:
        argv: program and arguments.
        request: the request of the trial.
        cwd: absolute path of the working directory.
        env: the complete environment; None for that of `environment_of`.
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
    """Return the words of a command that runs in the workspace. Files next to the eval file get absolute paths."""
    words = command.argv
    if command.shell is not None:
        plain = not set(command.shell) & set("|&;<>()$`*?[#~=%{}\n")
        words = tuple(shlex.split(command.shell)) if plain else ("/bin/sh", "-c", command.shell)
        if not plain:
            return words
    return tuple(_absolute_if_file(word, command.cwd, program=place == 0) for place, word in enumerate(words))


def _absolute_if_file(word: str, directory: str, *, program: bool) -> str:
    looks_like_file = "/" in word or ("." in word and not program)
    path = Path(directory, word)
    with suppress(OSError, ValueError):  # not a valid file name
        if looks_like_file and not Path(word).is_absolute() and path.is_file():
            return str(path)
    return word


def environment_of(request: TargetRequest) -> dict[str, str]:
    """Return the environment of an agent's programs: the request's, with the HOME of the sandbox."""
    sandbox = request.sandbox
    return {**request.env, **({} if sandbox is None or not sandbox.home else {"HOME": sandbox.home})}
