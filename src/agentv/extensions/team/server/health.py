"""Health, which needs no token, and metrics."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from anyio import CapacityLimiter, fail_after, to_thread
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


def health_routes(state: TeamState) -> list[Route]:
    """`/health` and `/metrics`. Threads that wait for others to write are never in the way."""
    threads = CapacityLimiter(4)

    async def in_time(function: Callable[..., Any], *given: Any) -> Any:
        """What a function returns that waits for the database. A late one goes on: a thread cannot be ended."""
        try:
            with fail_after(_WITHIN_S):
                return await to_thread.run_sync(function, *given, limiter=threads, abandon_on_cancel=True)
        except TimeoutError as error:
            message = f"database busy: it did not answer within {_WITHIN_S} seconds"
            raise RefusedError(503, "database-busy", message, RETRY_S) from error

    async def health(request: Request) -> Response:  # noqa: ARG001  # Starlette's signature
        try:
            await in_time(_numbers, state, _METRICS[-1:])
        except (StoreError, RefusedError) as error:
            return failed(state, error)
        return json_response(state, {"status": "ok", "version": __version__})

    async def metrics(request: Request) -> Response:
        try:
            await in_time(checked_identity, state, request, None, None)
            found = await in_time(_numbers, state, _METRICS)
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


def _numbers(state: TeamState, wanted: tuple[tuple[str, str, str], ...]) -> list[tuple[str, str, float]]:
    with state.database.reading() as transaction:
        return [(name, purpose, transaction.rows(query)[0][0]) for name, purpose, query in wanted]
