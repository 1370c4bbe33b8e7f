"""The gateway of a run, which serves requests that carry a live trial's token, on loopback and Unix sockets."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar
from aiohttp.web import Application, AppRunner, BaseSite, Request, SockSite, StreamResponse, TCPSite

from agentv.engine.calls.call_throttle import CallThrottle
from agentv.extensions.agents.gateway.forwarding import (
    REFUSED_STATUS,
    ForwardedCall,
    forward_once,
    read_bounded,
    refusal,
)
from agentv.extensions.agents.gateway.routes import LONGEST, RefusedBodyError, Route, read_body, route_of, token_in
from agentv.extensions.agents.gateway.session import CountedCall, TrialSession
from agentv.extensions.agents.sockets import listening_at
from agentv.model.run.trial import Trial
from agentv.model.suite.tools import GatewayAccess, ModelUpstream
from agentv.model.values.response import Failure
from agentv.ports import SpendingLog
from agentv.targets.http.failures import endpoint_of
from agentv.targets.model_api.prices import load_prices
from agentv.user_code.connections import unlimited_connector

if TYPE_CHECKING:
    from agentv.extensions.agents.gateway.recording import TrialExchanges

SOCKET = "agentv-gateway.sock"
"""Name of the Unix socket in a trial's directory."""

_PREFIX = "agentv-trial-"
"""Prefix of tokens, so that one that turns up in a file explains itself."""

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


class LocalGateway:
    """The gateway of a run. It listens on loopback from its first trial on. Use it from one event loop.

    Args:
        throttle: limits the calls.
        spending: records what each call used; may be None.
        clock: monotonic seconds.
    """

    def __init__(self, throttle: CallThrottle, spending: SpendingLog | None, clock: Callable[[], float]) -> None:
        load_prices()
        self._throttle = throttle
        self._spending = spending
        self._clock = clock
        self._starting = asyncio.Lock()
        self._sessions: dict[str, TrialSession] = {}  # by token
        self._sockets: dict[str, BaseSite] = {}
        self._runner: AppRunner | None = None
        self._client: ClientSession | None = None

    async def open(
        self, trial: Trial, upstream: ModelUpstream, directory: str = "", exchanges: TrialExchanges | None = None
    ) -> TrialSession | Failure:
        """Open a session through which the agent of a trial can call its model.

        Args:
            trial: trial of the agent.
            upstream: API of its model.
            directory: directory that the sandbox shows at the same path. The gateway also listens on a socket in it,
                for a sandbox without the host's network. Empty if the agent has that network.
            exchanges: recording or replay of its calls.
        """
        try:
            runner = await self._started()
            socket = str(Path(directory, SOCKET)) if directory else ""
            if socket:
                site = SockSite(runner, listening_at(socket))
                await site.start()
                _restrict(socket)
                self._sockets[socket] = site
        except (OSError, ValueError) as error:
            return Failure("gateway-failed", f"the gateway cannot listen: {error}")
        token = f"{_PREFIX}{secrets.token_urlsafe(32)}"
        endpoint = endpoint_of(upstream.protocol, upstream.base_url, upstream.api_key)
        access = GatewayAccess(f"http://127.0.0.1:{runner.addresses[0][1]}", token, socket)
        limits = self._throttle.model_calls(trial.target, endpoint, trial.budget_usd)
        found = TrialSession(access, upstream, trial, limits, self._clock, self._forget, self._record_cost, exchanges)
        self._sessions[token] = found
        return found

    def _record_cost(self, session: TrialSession, call: CountedCall) -> None:
        if session.exchanges is not None and session.exchanges.replays:
            return  # replays are free
        if self._spending is not None and (call.tokens is not None or call.cost_usd is not None):
            trial = session.trial
            self._spending.spend(trial.case.id, trial.target.name, call.step(), trial.key)

    async def _started(self) -> AppRunner:
        async with self._starting:
            if self._runner is None:
                # an empty context, since variables of the first trial, such as its time limit, must not apply to others
                self._runner = await asyncio.get_running_loop().create_task(self._start(), context=Context())
        return self._runner

    async def _start(self) -> AppRunner:
        """Start listening on a free loopback port.

        Raises:
            OSError: no port is free.
        """
        app = Application(client_max_size=LONGEST)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # Faulty requests of an agent are answered; they must not be logged to the terminal.
        silent = logging.getLogger("agentv.extensions.agents.gateway")
        silent.disabled = True
        runner = AppRunner(app, access_log=None, logger=silent, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        await TCPSite(runner, "127.0.0.1", 0).start()
        connector, jar, timeout = unlimited_connector(), DummyCookieJar(), ClientTimeout(total=None)
        self._client = ClientSession(
            auto_decompress=False, connector=connector, cookie_jar=jar, timeout=timeout, read_bufsize=1 << 18
        )
        return runner

    async def _forget(self, session: TrialSession) -> None:
        """Revoke the token of a trial and close its socket."""
        self._sessions.pop(session.access.token, None)
        site = self._sockets.pop(session.access.socket, None)
        if site is not None:
            await site.stop()
            _remove(session.access.socket)

    async def close(self) -> None:
        """Close all sessions and stop listening."""
        runner, self._runner = self._runner, None
        for session in tuple(self._sessions.values()):
            await session.close()
        client, self._client = self._client, None
        if runner is not None:
            await runner.cleanup()
        if client is not None:
            await client.close()

    async def _handle(self, request: Request) -> StreamResponse:
        path = request.rel_url.raw_path
        session = self._session(request)
        if session is None:
            return refusal(path, 401, "this gateway of agentv takes only the token of a running trial")
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return refusal(path, 426, "WebSockets are not supported: use HTTP")
        route = route_of(request.method, path)
        if route is None or route.protocol != session.upstream.protocol:
            what = f"{request.method} {path}"[:200]
            return refusal(path, 404, f"the gateway of agentv does not forward {what} for this trial")
        task = asyncio.current_task()
        if task is not None:
            session.running.add(task)
        try:
            return await self._forwarded(request, route, session)
        finally:
            session.running.discard(task)

    def _session(self, request: Request) -> TrialSession | None:
        """Return the session whose token a request carries, or None. Other host names are refused (DNS rebinding)."""
        host = request.headers.get("Host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name.lower() not in _LOOPBACK:
            return None
        found = (self._sessions.get(token) for token in token_in(request.headers, request.query))
        return next((session for session in found if session is not None), None)

    async def _forwarded(self, request: Request, route: Route, session: TrialSession) -> StreamResponse:
        data = await read_bounded(request.content, LONGEST) if (request.content_length or 0) <= LONGEST else None
        if data is None:
            return refusal(request.path, 413, f"the body is larger than {LONGEST:,} bytes")
        assert self._client is not None  # noqa: S101  # set by `_start`
        if session.refusal is not None:
            return refusal(request.path, REFUSED_STATUS, session.refusal.message)
        if route.api is None:
            return await forward_once(self._client, session, request, route, data)
        try:
            body = read_body(data, route)
        except RefusedBodyError as error:
            return refusal(request.path, 400, f"not forwarded: {error}")
        call = session.begin(body, route.api)
        return await ForwardedCall(session, self._client, request, route, body, call).answer()


def _restrict(socket: str) -> None:
    Path(socket).chmod(0o600)


def _remove(socket: str) -> None:
    with suppress(OSError):
        Path(socket).unlink(missing_ok=True)
