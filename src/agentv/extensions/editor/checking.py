"""Mistakes in one file as it is in the editor. Runs no code of the project and makes no connection."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from agentv.app.registries import registries
from agentv.authoring.fields.request import LoadRequest, Registries
from agentv.authoring.loading.check import FileCheck, check_file
from agentv.errors import Diagnostic
from agentv.extensions.editor.disk import FileKind, leave_deleted_directory
from agentv.extensions.editor.index import FileIndex, index_of
from agentv.model.suite.files import Checkout, RepositoryFile, Unavailable
from agentv.model.values.values import Span
from agentv.user_code.load_limit import within_limits

OFFLINE = "git-failed"
"""Of what needs a repository from a git host; opening a file in an editor must not fetch it, so it is not reported."""


@dataclass(frozen=True, slots=True)
class PathLink:
    """A path in a file, and the file that it means."""

    span: Span
    target: str


@dataclass(frozen=True, slots=True)
class EditorCheck:
    """Result of a check.

    Attributes:
        diagnostics: of the file and of those that it uses, sorted.
        read: absolute paths of all files that were read.
        index: None if the YAML is broken.
    """

    diagnostics: tuple[Diagnostic, ...]
    read: frozenset[str]
    index: FileIndex | None
    links: tuple[PathLink, ...] = ()


def check_in_editor(path: str, kind: FileKind, edits: Mapping[str, bytes]) -> EditorCheck:
    """All mistakes of an open file.

    Args:
        path: absolute; the file need not be on disk if it is among the edits.
        kind: of the file.
        edits: absolute path → text of each open file, which counts in place of what is on disk.
    """
    links: list[PathLink] = []

    def on_path(_written: str, span: Span, found: str) -> None:
        links.append(PathLink(span, found))

    checked = _checked(path, LoadRequest((), process_env=dict(os.environ), edits=edits, on_path=on_path, for_run=False))
    data = edits.get(path)
    index = index_of(path, data, kind) if data is not None and path.endswith((".yaml", ".yml")) else None
    return EditorCheck(checked.diagnostics, checked.read, index, tuple(links))


def _checked(path: str, request: LoadRequest) -> FileCheck:
    leave_deleted_directory()
    checked = within_limits(lambda: check_file(path, request, _offline(registries())))
    if not isinstance(checked, FileCheck):
        file, line = checked.place or (path, 1)
        message = f"this file {checked.reason}, so checking stopped"
        return FileCheck((Diagnostic("too-large", message, Span(file, line, 1, line, 2)),), frozenset())
    return FileCheck(tuple(one for one in checked.diagnostics if one.code != OFFLINE), checked.read)


def _offline(known: Registries) -> Registries:
    def no_checkout(wanted: RepositoryFile, _env: Mapping[str, str]) -> Checkout | Unavailable:
        return Unavailable(OFFLINE, f"{wanted.name} is not fetched by an editor")

    return replace(known, checkouts=no_checkout)
