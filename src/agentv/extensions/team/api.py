"""The HTTP API of a team's server: runs, labels, tokens, the audit log, health and metrics."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agentv.errors import StoreError
from agentv.extensions.team.database import AuditLine, audit_lines
from agentv.extensions.team.endpoints import (
    TeamCall,
    TeamEndpoint,
    TeamState,
    check_scope,
    checked_identity,
    failed,
    json_response,
)
from agentv.extensions.team.labels import TeamLabels
from agentv.extensions.team.people import Scope, Token
from agentv.extensions.team.uploaded import (
    LARGEST_BATCH,
    AddedLabels,
    Changed,
    LabelLines,
    MissingContents,
    Received,
    RowBatch,
    RunName,
    UploadRefusedError,
    UploadState,
)
from agentv.model.run.labels import Label
from agentv.store.labels import label_in
from agentv.version import __version__
from agentv.web.answers import RefusedError
from agentv.web.endpoints import declaring, description

ENDPOINTS: list[TeamEndpoint] = []

_PROJECT = "/projects/{project}/api"
_UPLOAD = f"{_PROJECT}/uploads/{{run}}"
_DOCUMENT = 64 << 20
"""Most bytes of a `run.json`, a `summary.json`, a list of artifacts, or labels."""


endpoint = declaring(ENDPOINTS, TeamEndpoint)


class WritingQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`writing`: the run is still in progress."""

    writing: bool = False


class RowsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Position of the rows in the body; see `RowBatch`."""

    start: Annotated[int, Meta(ge=0, le=2**53)]
    generation: Annotated[int, Meta(ge=0, le=2**53)]
    replace: bool = False


def existing_project(state: TeamState, call: TeamCall) -> str:
    """Return the project of a request, which may not exist if the token is for all projects.

    Raises:
        RefusedError: the project does not exist.
    """
    if call.project not in state.tokens.projects():
        raise RefusedError(404, "no-such-project", f"the server has no project '{call.project}'")
    return call.project


def _name(state: TeamState, call: TeamCall) -> RunName:
    is_admin = call.identity.allows("admin", call.project)
    return RunName(existing_project(state, call), call.names["run"], call.identity.actor, is_admin)


@endpoint(_UPLOAD, scope="push")
def _state(state: TeamState, call: TeamCall) -> UploadState:
    """Return what the server has of a run."""
    return state.uploads.state(_name(state, call))


@endpoint(f"{_UPLOAD}/record", method="PUT", scope="push", query=WritingQuery, limit=_DOCUMENT, body=dict[str, Any])
def _put_record(state: TeamState, call: TeamCall) -> Changed:
    """Store a run's run.json."""
    return Changed(state.uploads.put_record(_name(state, call), call.body, writing=call.query.writing))


@endpoint(f"{_UPLOAD}/rows", method="POST", scope="push", query=RowsQuery, limit=LARGEST_BATCH, body=bytes)
def _add_rows(state: TeamState, call: TeamCall) -> Received:
    """Store rows."""
    query: RowsQuery = call.query
    batch = RowBatch(query.start, query.generation, call.body, query.replace)
    return state.uploads.add_rows(_name(state, call), batch)


@endpoint(f"{_UPLOAD}/summary", method="PUT", scope="push", query=WritingQuery, limit=_DOCUMENT, body=dict[str, Any])
def _put_summary(state: TeamState, call: TeamCall) -> Changed:
    """Store a run's summary.json."""
    return Changed(state.uploads.put_summary(_name(state, call), call.body or None, writing=call.query.writing))


@endpoint(f"{_UPLOAD}/files", method="POST", scope="push", limit=_DOCUMENT, body=dict[str, str])
def _put_files(state: TeamState, call: TeamCall) -> MissingContents:
    """Declare the artifacts of a run."""
    files = msgspec.json.decode(call.body, type=dict[str, str])
    return state.uploads.put_files(_name(state, call), files)


@endpoint(f"{_PROJECT}/contents/{{sha256}}", method="PUT", scope="push", limit=LARGEST_BATCH, body=bytes)
def _put_content(state: TeamState, call: TeamCall) -> dict[str, Any]:
    """Store the content of an artifact."""
    state.uploads.put_content(existing_project(state, call), call.names["sha256"], call.body)
    return {}


@endpoint(_UPLOAD, method="DELETE", scope="admin")
def _delete(state: TeamState, call: TeamCall) -> Changed:
    """Delete a run."""
    return Changed(state.uploads.delete(_name(state, call)))


@endpoint(f"{_PROJECT}/labels/lines", scope="read")
def _label_lines(state: TeamState, call: TeamCall) -> LabelLines:
    """Return the labels of a project, in order of arrival."""
    return LabelLines([msgspec.Raw(line) for _, line in _labels(state, call).lines()])


def _labels(state: TeamState, call: TeamCall) -> TeamLabels:
    return TeamLabels(state.database, existing_project(state, call), call.identity.actor)


@endpoint(f"{_PROJECT}/labels/lines", method="POST", scope=None, limit=_DOCUMENT, body=bytes)
def _add_labels(state: TeamState, call: TeamCall) -> AddedLabels:
    """Add labels, one line of JSON each; needs the scope label or push."""
    may_push = call.identity.allows("push", call.project)
    if not may_push:
        check_scope(call.identity, "label", call.project)
    labels = [_label(line, number) for number, line in enumerate(call.body.split(b"\n"), 1) if line.strip()]
    actor = call.identity.actor
    other = next((one.person for one in labels if one.person != actor), None)
    if other is not None and not may_push:
        raise RefusedError(403, "other-person", f"{actor} may add labels of {actor} only, not of {other}")
    return AddedLabels(_labels(state, call).merge(labels))


def _label(line: bytes, number: int) -> Label:
    try:
        return label_in(line)
    except (ValueError, RecursionError) as error:
        raise UploadRefusedError(f"line {number} is no label: {error}") from error


class NewToken(Struct, frozen=True, forbid_unknown_fields=True):
    """A token to create. `days`: days until it expires; null: never."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Meta(min_length=1)]
    days: Annotated[int, Meta(ge=1, le=36_500)] | None = None


class CreatedToken(Struct, frozen=True):
    """A new token. `text` is returned only this once."""

    text: str
    token: Token


class AuditQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`limit`: maximum number of lines."""

    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100


@endpoint("/api/projects", scope=None)
def _projects(state: TeamState, call: TeamCall) -> dict[str, Any]:
    """Return the names of the projects that the sender may read."""
    return {"projects": [name for name in state.tokens.projects() if call.identity.allows("read", name)]}


@endpoint(f"{_PROJECT}/tokens", scope="admin")
def _tokens(state: TeamState, call: TeamCall) -> dict[str, list[Token]]:
    """Return the tokens of a project, without their texts."""
    return {"tokens": [token for token in state.tokens.all() if token.project in (None, call.project)]}


@endpoint(f"{_PROJECT}/tokens", method="POST", scope="admin", body=NewToken)
def _create_token(state: TeamState, call: TeamCall) -> CreatedToken:
    """Create a token."""
    wanted: NewToken = msgspec.json.decode(call.body, type=NewToken)
    actor = call.identity.actor
    return CreatedToken(*state.tokens.create(wanted.name, call.project, wanted.scopes, wanted.days, actor))


@endpoint(f"{_PROJECT}/tokens/{{token}}", method="DELETE", scope="admin")
def _revoke_token(state: TeamState, call: TeamCall) -> dict[str, bool]:
    """Revoke a token."""
    token_id = call.names["token"]
    if not any(token.id == token_id and token.project == call.project for token in state.tokens.all()):
        raise RefusedError(404, "no-such-token", "the project has no such token")
    return {"revoked": state.tokens.revoke(token_id, call.identity.actor)}


@endpoint(f"{_PROJECT}/audit", scope="admin", query=AuditQuery)
def _audit(state: TeamState, call: TeamCall) -> dict[str, list[AuditLine]]:
    """Return the audit log, newest first."""
    query: AuditQuery = call.query
    shared = call.identity.allows("admin", None)  # a project's admin must not see sign-ins to other projects
    found = audit_lines(state.database, call.project, shared=shared, limit=query.limit)
    return {"lines": found}


@endpoint("/api/openapi.json", scope=None)
def _description(state: TeamState, call: TeamCall) -> dict[str, Any]:  # noqa: ARG001  # the signature of handlers
    """Return this description."""
    return description("agentv serve", ENDPOINTS, ())


_METRICS = (
    ("agentv_runs", "Runs in the database.", "SELECT COUNT(*) FROM runs"),
    ("agentv_row_bytes", "Bytes of all rows.", "SELECT COALESCE(SUM(size), 0) FROM runs"),
)


def health_routes(state: TeamState) -> list[Route]:
    """Return the routes `/health` and `/metrics`."""

    async def health(request: Request) -> Response:  # noqa: ARG001  # Starlette's signature
        try:
            await run_in_threadpool(_numbers, state, _METRICS[:1])
        except StoreError as error:
            return failed(state, error)
        return json_response(state, {"status": "ok", "version": __version__})

    async def metrics(request: Request) -> Response:
        try:
            await run_in_threadpool(checked_identity, state, request, None, None)
            found = await run_in_threadpool(_numbers, state, _METRICS)
        except Exception as error:  # noqa: BLE001  # any error becomes a response
            return failed(state, error)
        lines = [
            "# HELP agentv_answers_total Requests that were answered.",
            "# TYPE agentv_answers_total counter",
            *(f'agentv_answers_total{{status="{status}"}} {n}' for status, n in sorted(state.answered.items())),
        ]
        for name, purpose, value in found:
            lines += [f"# HELP {name} {purpose}", f"# TYPE {name} gauge", f"{name} {value:g}"]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    return [Route("/health", health), Route("/metrics", metrics)]


def _numbers(state: TeamState, wanted: tuple[tuple[str, str, str], ...]) -> list[tuple[str, str, float]]:
    with state.database.reading() as transaction:
        return [(name, purpose, transaction.rows(query)[0][0]) for name, purpose, query in wanted]
