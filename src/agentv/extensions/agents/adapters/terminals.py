"""Commands that an agent asks us to run: in its workspace, confined as it is, and ended with it."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from itertools import count

from agentv.extensions.agents.adapters.process import environment_of
from agentv.extensions.agents.adapters.workspace_files import inside
from agentv.model.values.response import Failure
from agentv.ports import TargetRequest
from agentv.registry.fields import Command
from agentv.user_code.processes.processes import end_program, start_program

OUTPUT_LIMIT = 1_000_000
"""Bytes of output that are kept where the agent does not say, the last ones."""

MOST_TERMINALS = 64
"""Terminals of one session at a time."""

_CHUNK = 1 << 16
_GRACE_S = 1.0


class Terminal:
    """A command that runs, or has ended; stdout and stderr are one text."""

    def __init__(self, process: Process, limit: int) -> None:
        self._process = process
        self._limit = limit
        self._output = bytearray()
        self.truncated = False
        self._readers = [asyncio.ensure_future(self._read(one)) for one in (process.stdout, process.stderr) if one]

    @property
    def output(self) -> str:
        """What it has printed, as far as it is kept."""
        return self._output.decode(errors="ignore" if self.truncated else "replace")

    @property
    def status(self) -> int | None:
        """Its exit status, negative for a signal; None: it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Its exit status once it has ended, and all that it printed is read."""
        status = await self._process.wait()
        await asyncio.wait(self._readers, timeout=_GRACE_S)
        return status

    async def end(self) -> None:
        """End it, with all that it started."""
        await end_program(self._process, _GRACE_S)
        for one in self._readers:
            one.cancel()
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(_CHUNK):
            self._output += chunk
            if len(self._output) > self._limit:
                self.truncated = True
                del self._output[: len(self._output) - self._limit]


class Terminals:
    """The terminals of one session."""

    def __init__(self, request: TargetRequest, root: str) -> None:
        self._request = request
        self._root = root
        self._numbers = count(1)
        self._open: dict[str, Terminal] = {}

    async def create(
        self, command: str, args: Sequence[str], env: Mapping[str, str], cwd: str, output_limit: int | None
    ) -> str | Failure:
        """Start a command; its id.

        Raises:
            OutsideWorkspaceError: its directory is outside.
        """
        cwd = inside(self._root, cwd) if cwd else self._root
        if len(self._open) >= MOST_TERMINALS:
            return Failure("cannot-start", f"more than {MOST_TERMINALS} terminals are open")
        is_line = not args and any(letter in command for letter in " |&;<>$")
        argv = ("/bin/sh", "-c", command) if is_line else (command, *args)
        sandbox = self._request.sandbox
        confined = argv if sandbox is None else tuple(sandbox.argv(argv, cwd))
        try:
            process = await start_program(Command(confined, cwd=cwd), env=environment_of(self._request, env))
        except (OSError, ValueError) as error:
            return Failure("cannot-start", f"cannot start {command}: {error}")
        if process.stdin is not None:
            process.stdin.close()
        limit = OUTPUT_LIMIT if output_limit is None else min(output_limit, OUTPUT_LIMIT)
        identity = f"terminal-{next(self._numbers)}"
        self._open[identity] = Terminal(process, limit)
        return identity

    def find(self, identity: str) -> Terminal | None:
        """The terminal of that id."""
        return self._open.get(identity)

    async def release(self, identity: str) -> None:
        """End a terminal, and forget it."""
        found = self._open.pop(identity, None)
        if found is not None:
            await found.end()

    async def close(self) -> None:
        """End all of them."""
        for identity in tuple(self._open):
            await self.release(identity)
