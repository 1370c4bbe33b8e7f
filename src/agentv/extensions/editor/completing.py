"""Completions at a place of an authored file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentv.extensions.editor.cursor import Cursor, cursor_at
from agentv.extensions.editor.disk import FileKind
from agentv.extensions.editor.index import TARGET_KEYS, FileIndex
from agentv.extensions.editor.project import Project

_MOST = 500
"""Names that are offered; an editor filters them by what is typed."""

_PATH_STARTS = ("./", "../", "/", "file://")


@dataclass(frozen=True, slots=True)
class Completion:
    """A word that may stand at the cursor.

    Attributes:
        insert: what is written; differs from the label where more belongs to it.
        what: the kind of thing, for the icon that an editor shows.
    """

    label: str
    insert: str
    what: Literal["key", "value", "name", "file"]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Completions:
    """Words that may stand at the cursor, the likeliest first, and the column at which the word to replace begins."""

    start: int
    items: tuple[Completion, ...]


def complete(
    lines: Sequence[str], place: tuple[int, int], kind: FileKind, project: Project, known: FileIndex | None
) -> Completions:
    """The words that may stand at a place.

    Args:
        lines: of the text.
        place: line and column of the cursor, counted from 0, the column in characters.
        kind: of the file.
        project: what names mean here.
        known: the names of this file when it could last be read.
    """
    cursor = cursor_at(lines, *place)
    if cursor is None:
        return Completions(place[1], ())
    if cursor.prefix.startswith(_PATH_STARTS):
        return _paths(cursor, project)
    named = list(_names(cursor, project, known))
    view = project.schema(kind)
    items: Iterable[Completion] = named
    if view is not None and cursor.key is None:
        data = cursor.skeleton()
        keys = [one for one in view.keys(cursor.path, data) if one.name not in cursor.beside and not one.older]
        items = [*named, *(Completion(one.name, f"{one.name}: ", "key", one.text) for one in keys)]
    elif view is not None and cursor.key is not None and not named:
        values = view.values(cursor.path, cursor.skeleton(), cursor.key)
        about = cursor.key if cursor.key in {"type", "provider"} else None
        items = [Completion(one, one, "value", view.summary(f"{about}.{one}") if about else "") for one in values]
    return Completions(cursor.start, tuple(items)[:_MOST])


def _names(cursor: Cursor, project: Project, known: FileIndex | None) -> Iterator[Completion]:
    """Names of the project, where a name is expected."""
    key = cursor.key if cursor.key is not None else next((one for one in reversed(cursor.path) if one != "-"), "")
    in_value = cursor.key is not None or (bool(cursor.path) and cursor.path[-1] == "-")
    if not in_value:
        return
    if key in TARGET_KEYS:
        names = dict.fromkeys(name.text for name in project.targets())
        yield from (Completion(name, name, "name", "a target of .agentv/targets.yaml") for name in names)
    elif key == "depends_on":
        own = cursor.levels[-1].get("id", "")
        cases = known.cases if known else ()
        yield from (Completion(one.id, one.id, "name", "a case of this file") for one in cases if one.id != own)
    elif key == "include":
        yield from (Completion(name, name, "name", "a template") for name in project.templates())


def _paths(cursor: Cursor, project: Project) -> Completions:
    """The files that a begun path can go on with."""
    written = cursor.prefix.removeprefix("file://")
    folder, _, begun = written.rpartition("/")
    base = Path(project.root) if written.startswith("/") else Path(project.directory)
    directory = base / folder.lstrip("/")
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError:
        return Completions(cursor.start, ())
    shown = [entry for entry in entries if begun.startswith(".") or not entry.name.startswith(".")]
    items = (f"{entry.name}/" if entry.is_dir() else entry.name for entry in shown[:_MOST])
    start = cursor.start + len(cursor.prefix) - len(begun)
    return Completions(start, tuple(Completion(name, name, "file") for name in items))
