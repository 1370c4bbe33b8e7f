"""Health, which needs no token, and metrics."""

from __future__ import annotations

import asyncio
import time
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agentv.errors import StoreError
from agentv.extensions.team.server.endpoints import RETRY_S, failed, json_response
from agentv.extensions.team.server.identity import checked_identity
from agentv.extensions.team.server.state import TeamState
from agentv.version import __version__
from agentv.web.answers import RefusedError

_METRICS = (
    ("agentv_runs", "Runs in the database.", "SELECT COUNT(*) FROM runs"),
    ("agentv_runs_uploading", "Runs that are being uploaded.", "SELECT COUNT(*) FROM runs WHERE writing = 1"),
    ("agentv_row_bytes", "Bytes of all rows.", "SELECT COALESCE(SUM(size), 0) FROM runs"),
    ("agentv_projects", "Projects.", "SELECT COUNT(*) FROM projects"),
)


_WITHIN_S = 0.8
"""Seconds for the database: whoever watches a server must not wait longer, whatever others do there."""

_Query = tuple[str, str, str]
_T = TypeVar("_T")


class _Numbers:
    """Numbers out of the database. Threads that wait for others to write are never in the way.

    Of each query one thread at most runs it, however many ask: a database that hangs takes no more.
    """

    def __init__(self, state: TeamState) -> None:
        self._state = state
        self._threads = CapacityLimiter(2)
        self._checking = CapacityLimiter(2)
        self._running: dict[tuple[_Query, ...], asyncio.Task[list[tuple[str, str, float]]]] = {}

    async def of(self, wanted: tuple[_Query, ...]) -> list[tuple[str, str, float]]:
        """The numbers.

        Raises:
            DatabaseBusyError: they do not come in time.
            StoreError: the database cannot be used.
        """
        running = self._running.get(wanted)
        if running is None or running.done():
            running = asyncio.create_task(self._read(wanted))
            self._running[wanted] = running
        return await _in_time(running)

    async def check_sender(self, request: Request) -> None:
        """Refuse a request without a token.

        Raises:
            RefusedError: it has none, or a wrong one.
            DatabaseBusyError, StoreError: as `of`.
        """
        check = to_thread.run_sync(checked_identity, self._state, request, None, None, limiter=self._checking)
        await _in_time(asyncio.create_task(check))

    async def _read(self, wanted: tuple[_Query, ...]) -> list[tuple[str, str, float]]:
        return await to_thread.run_sync(_numbers, self._state, wanted, limiter=self._threads)


async def _in_time(running: asyncio.Task[_T]) -> _T:
    """What a task returns that waits for the database. A late one goes on: a thread cannot be ended."""
    running.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody may wait any more
    try:
        return await asyncio.wait_for(asyncio.shield(running), _WITHIN_S)
    except TimeoutError as error:
        raise DatabaseBusyError from error


class DatabaseBusyError(RefusedError):
    """The database does not answer in time."""

    def __init__(self) -> None:
        message = f"database busy: it did not answer within {_WITHIN_S} seconds"
        super().__init__(503, "database-busy", message, RETRY_S)


def health_routes(state: TeamState) -> list[Route]:
    """`/health` and `/metrics`."""
    numbers = _Numbers(state)

    async def health(request: Request) -> Response:  # noqa: ARG001  # Starlette's signature
        try:
            await numbers.of(_METRICS[-1:])
        except (StoreError, DatabaseBusyError) as error:
            return failed(state, error)
        return json_response(state, {"status": "ok", "version": __version__})

    async def metrics(request: Request) -> Response:
        try:
            await numbers.check_sender(request)
            found = await numbers.of(_METRICS)
        except Exception as error:  # noqa: BLE001  # whatever it is, a client gets a sentence
            return failed(state, error)
        lines = [
            "# HELP agentv_answers_total Requests that were answered.",
            "# TYPE agentv_answers_total counter",
            *(f'agentv_answers_total{{status="{status}"}} {n}' for status, n in sorted(state.answered.items())),
        ]
        if state.copied:
            copied = time.time() - state.copied
            found = [*found, ("agentv_copied_seconds", "Seconds since the copies were complete.", copied)]
        for name, purpose, value in found:
            lines += [f"# HELP {name} {purpose}", f"# TYPE {name} gauge", f"{name} {value:g}"]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    return [Route("/health", health), Route("/metrics", metrics)]


def _numbers(state: TeamState, wanted: tuple[_Query, ...]) -> list[tuple[str, str, float]]:
    with state.database.reading() as transaction:
        return [(name, purpose, transaction.rows(query)[0][0]) for name, purpose, query in wanted]
