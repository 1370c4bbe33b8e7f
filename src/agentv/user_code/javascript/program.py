"""The program of a JavaScript runtime: started so that it ends with agentv, and the error that it printed last."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Mapping
from contextlib import suppress

from agentv.registry.fields import Command
from agentv.user_code.excerpts import last_error
from agentv.user_code.processes.processes import KILL_TIMEOUT_S, kill_group, start_program

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
