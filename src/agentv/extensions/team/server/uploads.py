"""Endpoints that take runs."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from agentv.extensions.team.server.endpoints import TeamEndpoint
from agentv.extensions.team.server.requests import TeamCall
from agentv.extensions.team.server.state import TeamState
from agentv.extensions.team.store.uploaded import LARGEST_BATCH, Received, RowBatch, RunName, UploadState
from agentv.web.answers import RefusedError

_UPLOAD = "/projects/{project}/api/uploads/{run}"
_DOCUMENT = 64 << 20
"""Bytes of a `run.json`, a `summary.json`, or a list of artifacts."""


class WritingQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`writing`: the run goes on."""

    writing: bool = False


class RowsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which rows the body holds; see `RowBatch`."""

    start: Annotated[int, Meta(ge=0, le=2**53)]
    generation: Annotated[int, Meta(ge=0, le=2**53)]
    replace: bool = False


class Changed(Struct, frozen=True):
    """Whether a request changed anything."""

    changed: bool


class MissingContents(Struct, frozen=True):
    """SHA-256 of the contents that the client must upload before it sends the list again; empty: all are there."""

    missing: list[str]


def existing_project(state: TeamState, call: TeamCall) -> str:
    """Return the project of a request; with a token for all projects, a request may name one that does not exist.

    Raises:
        RefusedError: the project does not exist.
    """
    if call.of_project not in state.tokens.projects():
        raise RefusedError(404, "no-such-project", f"the server has no project '{call.of_project}'")
    return call.of_project


def _name(state: TeamState, call: TeamCall) -> RunName:
    is_admin = call.identity.allows("admin", call.of_project)
    return RunName(existing_project(state, call), call.names["run"], call.actor, is_admin)


def _state(state: TeamState, call: TeamCall) -> UploadState:
    return state.uploads.state(_name(state, call))


def _put_record(state: TeamState, call: TeamCall) -> Changed:
    return Changed(state.uploads.put_record(_name(state, call), call.body, writing=call.query.writing))


def _add_rows(state: TeamState, call: TeamCall) -> Received:
    query: RowsQuery = call.query
    batch = RowBatch(query.start, query.generation, call.body, query.replace)
    return state.uploads.add_rows(_name(state, call), batch)


def _put_summary(state: TeamState, call: TeamCall) -> Changed:
    return Changed(state.uploads.put_summary(_name(state, call), call.body or None, writing=call.query.writing))


def _put_files(state: TeamState, call: TeamCall) -> MissingContents:
    return MissingContents(state.uploads.put_files(_name(state, call), call.decoded(dict[str, str])))


def _put_content(state: TeamState, call: TeamCall) -> dict[str, Any]:
    state.uploads.put_content(existing_project(state, call), call.names["sha256"], call.body)
    return {}


def _delete(state: TeamState, call: TeamCall) -> Changed:
    return Changed(state.uploads.delete(_name(state, call)))


ENDPOINTS = (
    TeamEndpoint("GET", _UPLOAD, "What the server has of a run.", "push", _state),
    TeamEndpoint(
        "PUT",
        f"{_UPLOAD}/record",
        "Store a run's run.json.",
        "push",
        _put_record,
        WritingQuery,
        _DOCUMENT,
        dict[str, Any],
    ),
    TeamEndpoint("POST", f"{_UPLOAD}/rows", "Store rows.", "push", _add_rows, RowsQuery, LARGEST_BATCH, bytes),
    TeamEndpoint(
        "PUT",
        f"{_UPLOAD}/summary",
        "Store a run's summary.json.",
        "push",
        _put_summary,
        WritingQuery,
        _DOCUMENT,
        dict[str, Any],
    ),
    TeamEndpoint(
        "POST",
        f"{_UPLOAD}/files",
        "Say which artifacts a run has.",
        "push",
        _put_files,
        limit=_DOCUMENT,
        body=dict[str, str],
    ),
    TeamEndpoint(
        "PUT",
        "/projects/{project}/api/contents/{sha256}",
        "Store the content of an artifact.",
        "push",
        _put_content,
        limit=LARGEST_BATCH,
        body=bytes,
    ),
    TeamEndpoint("DELETE", _UPLOAD, "Delete a run.", "admin", _delete),
)
