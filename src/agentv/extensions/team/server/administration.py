"""Endpoints for projects, tokens and the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from agentv.extensions.team.server.endpoints import TeamEndpoint
from agentv.extensions.team.server.requests import TeamCall
from agentv.extensions.team.server.state import TeamState
from agentv.extensions.team.store.audit import AuditLine, audit_lines
from agentv.extensions.team.store.tokens import Scope, Token
from agentv.web.answers import RefusedError


class NewToken(Struct, frozen=True, forbid_unknown_fields=True):
    """A token to create. `days`: how long it is valid; null: for ever."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Meta(min_length=1)]
    days: Annotated[int, Meta(ge=1, le=36_500)] | None = None


class CreatedToken(Struct, frozen=True):
    """A new token. `text` is shown only this once."""

    text: str
    token: Token


class AuditQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`before`: the id of a line; `limit`: how many of those before it."""

    before: str = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


def _projects(state: TeamState, call: TeamCall) -> dict[str, Any]:
    return {"projects": call.identity.projects(state.tokens.projects())}


def _tokens(state: TeamState, call: TeamCall) -> dict[str, list[Token]]:
    return {"tokens": [token for token in state.tokens.all() if token.project in (None, call.of_project)]}


def _create_token(state: TeamState, call: TeamCall) -> CreatedToken:
    wanted: NewToken = call.decoded(NewToken)
    return CreatedToken(*state.tokens.create(wanted.name, call.of_project, wanted.scopes, wanted.days, call.actor))


def _revoke_token(state: TeamState, call: TeamCall) -> dict[str, bool]:
    token_id = call.names["token"]
    if not any(token.id == token_id and token.project == call.of_project for token in state.tokens.all()):
        raise RefusedError(404, "no-such-token", "the project has no such token")
    return {"revoked": state.tokens.revoke(token_id, call.actor)}


def _audit(state: TeamState, call: TeamCall) -> dict[str, list[AuditLine]]:
    query: AuditQuery = call.query
    shared = call.identity.allows("admin", None)  # who signs in elsewhere is no business of a project's admin
    found = audit_lines(state.database, call.of_project, shared=shared, before=query.before, limit=query.limit)
    return {"lines": found}


_PROJECT = "/projects/{project}/api"
ENDPOINTS = (
    TeamEndpoint("GET", "/api/projects", "Names of the projects that the sender may read.", None, _projects),
    TeamEndpoint("GET", f"{_PROJECT}/tokens", "Tokens of a project, without their texts.", "admin", _tokens),
    TeamEndpoint("POST", f"{_PROJECT}/tokens", "Create a token.", "admin", _create_token, body=NewToken),
    TeamEndpoint("DELETE", f"{_PROJECT}/tokens/{{token}}", "Revoke a token.", "admin", _revoke_token),
    TeamEndpoint("GET", f"{_PROJECT}/audit", "The audit log, newest first.", "admin", _audit, AuditQuery),
)
