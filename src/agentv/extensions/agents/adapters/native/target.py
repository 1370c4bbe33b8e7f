"""Target of an agent that prints a JSON stream: one session for each trial, started again for each turn."""

from __future__ import annotations

import asyncio
import re

from agentv.extensions.agents.adapters.native.session import NativeSession
from agentv.extensions.agents.adapters.native.settings import NativeAgentSettings
from agentv.extensions.agents.adapters.process import argv_of, environment_of
from agentv.extensions.agents.adapters.trials import SessionTarget
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import TargetRequest
from agentv.registry.fields import Command
from agentv.user_code.processes import run_program

VERSION_S = 20.0
"""Seconds that `--version` may take; then the version is not known."""

_LIMIT = 100_000
_VERSION = re.compile(rb"\d+\.\d+(?:\.\d+)*[\w.+-]*")


class NativeTarget(SessionTarget[NativeSession]):
    """Agents of one target."""

    def __init__(self, settings: NativeAgentSettings) -> None:
        super().__init__()
        self._settings = settings
        self._looking: asyncio.Lock = asyncio.Lock()
        self._version: str | None = None

    async def begin(self, request: TargetRequest) -> NativeSession | Failure:
        """A session in the directories of the trial."""
        try:
            return NativeSession(self._settings, request)
        except OSError as error:
            return Failure("cannot-start", f"no directory can be made for the agent: {error}")

    async def ask(self, session: NativeSession, request: TargetRequest) -> TargetResponse | Failure:
        """The answer of the agent, whose version is looked up once."""
        async with self._looking:
            if self._version is None:
                self._version = await self._found_version(request)
        return await session.ask(request, self._version)

    async def _found_version(self, request: TargetRequest) -> str:
        """What the program says, in the sandbox of the first trial; empty: the stream tells it, or nothing does."""
        started, asked = self._settings.started, self._settings.program.version_argv
        if not asked or started.shell is not None:
            return ""
        argv, cwd = (*argv_of(started), *asked), request.workspace_path or ""
        confined = argv if request.sandbox is None else tuple(request.sandbox.argv(argv, cwd))
        ended = await run_program(
            Command(confined, cwd=cwd),
            stdin=b"",
            env=environment_of(request),
            timeout_s=min(VERSION_S, request.timeout_s / 4),
            limit=_LIMIT,
        )
        if isinstance(ended, Failure) or ended.status:
            return ""
        found = _VERSION.search(ended.stdout) or _VERSION.search(ended.stderr)
        return found[0].decode(errors="replace").rstrip(".") if found else ""
