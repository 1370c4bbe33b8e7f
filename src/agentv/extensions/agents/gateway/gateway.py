"""The gateway of one run: started by the first trial that needs it, and gone with the run."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextvars import Context
from pathlib import Path

from agentv.extensions.agents.gateway.ports import GatewaySession, GatewayTrial, ModelApis, ModelCallLimits
from agentv.extensions.agents.gateway.server import GatewayServer
from agentv.extensions.agents.gateway.session import CountedCall, TrialSession
from agentv.model.suite.gateway import GatewayAccess, ModelUpstream
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure
from agentv.ports import SpendingLog

SOCKET = "agentv-gateway.sock"
"""File of the Unix socket in the directory of a trial."""

_PREFIX = "agentv-trial-"
"""How tokens begin, so that one that turns up in a file explains itself."""


class LocalGateway:
    """A `ModelGateway` in this process.

    Args:
        limits: admits the calls.
        apis: what is known of model APIs.
        spending: keeps what each call took; None: nobody does.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        limits: ModelCallLimits,
        apis: ModelApis,
        spending: SpendingLog | None,
        clock: Callable[[], float],
    ) -> None:
        self._limits = limits
        self._apis = apis
        self._spending = spending
        self._clock = clock
        self._server: GatewayServer | None = None
        self._starting = asyncio.Lock()

    async def open(self, spec: TargetSpec, upstream: ModelUpstream, trial: GatewayTrial) -> GatewaySession | Failure:
        """Let the agent of a trial call its model."""
        try:
            server = await self._started()
            socket = str(Path(trial.socket_directory, SOCKET)) if trial.socket_directory else ""
            if socket:
                await server.listen_on(socket)
        except (OSError, ValueError) as error:
            return Failure("gateway-failed", f"the gateway cannot listen: {error}")
        token = f"{_PREFIX}{secrets.token_urlsafe(32)}"
        access = GatewayAccess(f"http://127.0.0.1:{server.port}", token, socket)
        session = TrialSession(
            access,
            upstream,
            trial,
            self._limits.model_calls(spec, upstream, trial.budget_usd),
            self._apis,
            self._clock,
            server.forget,
            lambda call: self._spent(trial, call),
            frozenset(spec.retry.status_codes),
        )
        server.sessions[token] = session
        return session

    def _spent(self, trial: GatewayTrial, call: CountedCall) -> None:
        if trial.exchanges is not None and trial.exchanges.replays:
            return  # nobody is paid
        if self._spending is not None and (call.tokens is not None or call.cost_usd is not None):
            self._spending.spend(trial.case_id, trial.target, call.step(), trial.key)

    async def _started(self) -> GatewayServer:
        async with self._starting:
            if self._server is None:
                server = GatewayServer()
                # nothing of the trial that happens to be first, such as its time limit, holds for those of others
                await asyncio.get_running_loop().create_task(server.start(), context=Context())
                self._server = server
        return self._server

    async def close(self) -> None:
        """Stop listening."""
        server, self._server = self._server, None
        if server is not None:
            for session in tuple(server.sessions.values()):
                await session.close()
            await server.stop()
