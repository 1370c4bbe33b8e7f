"""Endpoints for the labels of a project, as `agentv push` sends and `agentv pull labels` gets them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from agentv.extensions.team.server.endpoints import TeamEndpoint
from agentv.extensions.team.server.identity import check_scope
from agentv.extensions.team.server.requests import TeamCall
from agentv.extensions.team.server.state import TeamState
from agentv.extensions.team.server.uploads import existing_project
from agentv.extensions.team.store.labels import LabelRefusedError, TeamLabels
from agentv.model.run.labelled.labels import Label
from agentv.store.labels.label_files import label_in
from agentv.web.answers import RefusedError

_LINES = "/projects/{project}/api/labels/lines"
_AT_ONCE = 500


class LinesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`after`: `cursor` of the answer before; 0: from the first label on."""

    after: Annotated[int, Meta(ge=0, le=2**53)] = 0


class LabelLines(Struct, frozen=True):
    """Labels in the order of their arrival. `cursor`: pass it as `after` for those that follow."""

    labels: list[msgspec.Raw]
    cursor: int
    more: bool


class AddedLabels(Struct, frozen=True):
    """How many labels the project did not have."""

    added: int


def _lines(state: TeamState, call: TeamCall) -> LabelLines:
    query: LinesQuery = call.query
    found = _labels(state, call).lines(query.after, _AT_ONCE)
    cursor = found[-1][0] if found else query.after
    return LabelLines([msgspec.Raw(line) for _, line in found], cursor, len(found) == _AT_ONCE)


def _labels(state: TeamState, call: TeamCall) -> TeamLabels:
    return TeamLabels(state.database, existing_project(state, call), call.actor)


def _add(state: TeamState, call: TeamCall) -> AddedLabels:
    may_push = call.identity.allows("push", call.of_project)
    if not may_push:
        check_scope(call.identity, "label", call.of_project)
    labels = [_label(line, number) for number, line in enumerate(call.body.split(b"\n"), 1) if line.strip()]
    other = next((one.person for one in labels if one.person != call.actor), None)
    if other is not None and not may_push:
        raise RefusedError(403, "other-person", f"{call.actor} may add labels of {call.actor} only, not of {other}")
    return AddedLabels(_labels(state, call).merge(labels))


def _label(line: bytes, number: int) -> Label:
    try:
        return label_in(line)
    except (ValueError, RecursionError) as error:
        raise LabelRefusedError(f"line {number} is no label: {error}") from error


ENDPOINTS: tuple[TeamEndpoint, ...] = (
    TeamEndpoint("GET", _LINES, "Labels of a project, in the order of their arrival.", "read", _lines, LinesQuery),
    TeamEndpoint(
        "POST", _LINES, "Add labels, one line of JSON each; needs the scope label or push.", None, _add, body=bytes
    ),
)
