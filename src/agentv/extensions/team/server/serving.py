"""A team's server: answers requests, and keeps the copies of runs up to date, until it is stopped."""

from __future__ import annotations

import ipaddress
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentv.errors import AgentvError, UsageError
from agentv.extensions.team.server.api import ENDPOINTS
from agentv.extensions.team.server.endpoints import failed, routes_of
from agentv.extensions.team.server.health import health_routes
from agentv.extensions.team.server.pages import ProjectPages, page_routes
from agentv.extensions.team.server.sign_in import sign_in_routes
from agentv.extensions.team.server.state import TeamState
from agentv.extensions.team.server.upload_totals import UploadTotals
from agentv.extensions.team.store.replica import Replica
from agentv.user_code.memory import map_large_blocks
from agentv.web.answers import RefusedError
from agentv.web.connections import LimitedConnection
from agentv.web.security import Guard, loopback_addresses


def team_routes(state: TeamState) -> list[Route]:
    """The routes for uploads, labels and administration, sign-in, health and metrics."""
    return [*routes_of(state, ENDPOINTS), *sign_in_routes(state), *health_routes(state)]


def team_application(state: TeamState, data: Path) -> Guard:
    """The application of a server: these routes, and the pages of every project.

    Args:
        state: of the server.
        data: directory of the copies of runs.
    """
    pages = ProjectPages(state, data)

    async def not_found(request: Request, error: Exception) -> Response:  # noqa: ARG001  # Starlette's signature
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == 405:
            return failed(state, RefusedError(405, "wrong-method", "this address does not support the method"))
        return failed(state, RefusedError(status, "no-such-address", "there is nothing at this address"))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        yield
        pages.close()

    starlette = Starlette(
        routes=[*team_routes(state), *page_routes(state, pages)],
        exception_handlers={HTTPException: not_found},
        lifespan=lifespan,
    )
    starlette.router.redirect_slashes = False  # it would redirect to the scheme of this side of a proxy
    return Guard(starlette, state.addresses, None)


_LOOK_S = 0.1
"""Seconds between two looks whether the database has changed."""

_COMPARE_S = 5.0
"""Seconds after which copies are compared with a database that has not changed: runs may have become silent."""

_RETRY_S = 1.0

_ADDRESS = re.compile(r"https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        UsageError: the address cannot be used.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)[0]
        made = socket.socket(*found[:3])
    except OSError as error:
        raise UsageError(f"cannot listen on {host}: {error.strerror}", "give another --host") from error
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(found[4])
        made.listen(128)
    except OSError as error:
        made.close()
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}", "give another --host or --port"
        ) from error
    return made


def serve_team(
    state: TeamState, data: Path, listening: socket.socket, started: Callable[[], None], problem: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        state: of the server.
        data: directory of the copies.
        listening: takes the connections.
        started: called once.
        problem: called with what went wrong in the background, once for each reason.

    Raises:
        StoreError: the directory cannot be used.
    """
    map_large_blocks()
    with copying(state, data, problem):
        started()
        with suppress(KeyboardInterrupt):
            team_server(state, data).run(sockets=[listening])


def team_server(state: TeamState, data: Path) -> uvicorn.Server:
    """The HTTP server. It logs nothing: what a client sends is worth no line in a terminal."""
    for name in ("uvicorn", "uvicorn.error", "sse_starlette", "asyncio"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    config = uvicorn.Config(
        team_application(state, data),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        http=LimitedConnection,
        timeout_graceful_shutdown=3,
        proxy_headers=bool(state.proxies),
        forwarded_allow_ips=list(state.proxies),
    )
    return uvicorn.Server(config)


def trusted_proxies(given: Sequence[str]) -> Sequence[str]:
    """The proxies that are believed who sent a request.

    Raises:
        UsageError: one is neither an IP address nor a network.
    """
    for one in given:
        try:
            ipaddress.ip_network(one)
        except ValueError as error:
            hint = "give it as 10.0.0.7, or a network as 10.0.0.0/24"
            raise UsageError(f"'{one}' is no IP address of a proxy", hint) from error
    return given


def public_addresses(given: Sequence[str], host: str, port: int) -> list[str]:
    """The addresses under which people reach a server: those given, else where it listens.

    Raises:
        UsageError: an address is invalid, or the server listens on all addresses and none is given.
    """
    for one in given:
        if _ADDRESS.fullmatch(one.rstrip("/").lower()) is None:
            raise UsageError(
                f"'{one}' is no address of a server", "give it as https://evals.example.org, without a path"
            )
    if given:
        return [one.rstrip("/").lower() for one in given]
    if host in ("0.0.0.0", "::"):  # noqa: S104  # it is refused
        raise UsageError(
            f"a server that listens on {host} must know its address", "add --address https://evals.example.org"
        )
    if host in ("127.0.0.1", "localhost", "::1"):
        return loopback_addresses(port)
    shown = f"[{host}]" if ":" in host else host
    return [f"http://{shown.lower()}" + ("" if port == 80 else f":{port}")]


@contextmanager
def copying(state: TeamState, data: Path, problem: Callable[[str], None]) -> Iterator[Replica]:
    """Keep the copies of runs up to date, for as long as the block."""
    ended = Event()
    totals = UploadTotals()
    replica = Replica(state.database, data, totals.of)
    thread = Thread(target=_copy, args=(state, replica, ended, problem), name="agentv-copies", daemon=True)
    thread.start()
    try:
        yield replica
    finally:
        ended.set()
        thread.join(timeout=5)
        totals.close()
        state.database.close()
        replica.close()


def _copy(state: TeamState, replica: Replica, ended: Event, problem: Callable[[str], None]) -> None:
    said, seen, at = "", -1, 0.0
    while not ended.wait(_LOOK_S):
        try:
            found = state.uploads.changes()
            if found != seen or time.monotonic() - at > _COMPARE_S:
                replica.update()
                seen, at = found, time.monotonic()
            replica.complete()
            state.copied, said = time.time(), ""
        except AgentvError as error:
            if str(error) != said and not ended.is_set():
                said = str(error)
                problem(said)
            ended.wait(_RETRY_S)
