"""Health and metrics, which need no token: they name nothing."""

from __future__ import annotations

import time

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agentv.errors import StoreError
from agentv.version import __version__
from agentv.web.team.endpoints import failed, json_response
from agentv.web.team.state import TeamState

_METRICS = (
    ("agentv_runs", "Runs in the database.", "SELECT COUNT(*) FROM runs"),
    ("agentv_runs_uploading", "Runs that are being uploaded.", "SELECT COUNT(*) FROM runs WHERE writing = 1"),
    ("agentv_row_bytes", "Bytes of all rows.", "SELECT COALESCE(SUM(size), 0) FROM runs"),
    ("agentv_projects", "Projects.", "SELECT COUNT(*) FROM projects"),
)


def health_routes(state: TeamState) -> list[Route]:
    """`/health` and `/metrics`."""

    async def health(request: Request) -> Response:  # noqa: ARG001  # Starlette's signature
        try:
            await run_in_threadpool(_numbers, state, _METRICS[-1:])
        except StoreError as error:
            return failed(state, error)
        return json_response(state, 200, {"status": "ok", "version": __version__})

    async def metrics(request: Request) -> Response:  # noqa: ARG001  # as above
        lines = [
            "# HELP agentv_answers_total Requests that were answered.",
            "# TYPE agentv_answers_total counter",
            *(f'agentv_answers_total{{status="{status}"}} {n}' for status, n in sorted(state.answered.items())),
        ]
        up = 1
        try:
            found = await run_in_threadpool(_numbers, state, _METRICS)
        except StoreError:
            found, up = [], 0
        if state.copied:
            found.append(
                ("agentv_copied_seconds", "Seconds since the copies were complete.", time.time() - state.copied)
            )
        found.append(("agentv_database_up", "Whether the database answers.", up))
        for name, purpose, value in found:
            lines += [f"# HELP {name} {purpose}", f"# TYPE {name} gauge", f"{name} {value:g}"]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    return [Route("/health", health), Route("/metrics", metrics)]


def _numbers(state: TeamState, wanted: tuple[tuple[str, str, str], ...]) -> list[tuple[str, str, float]]:
    with state.database.reading() as transaction:
        return [(name, purpose, transaction.rows(query)[0][0]) for name, purpose, query in wanted]
