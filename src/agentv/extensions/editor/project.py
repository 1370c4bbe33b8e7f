"""The names available to a file in the editor: targets, templates, assertion types and cases."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from agentv.app.authored.reference import schema_text
from agentv.app.registries import registries
from agentv.authoring.source.boundary import Boundary, boundary_around
from agentv.authoring.source.files import is_file, repository_root, templates_in, upwards
from agentv.extensions.editor.index import (
    MOST_BYTES,
    FileIndex,
    FileKind,
    Name,
    bytes_of,
    index_of,
    leave_deleted_directory,
)
from agentv.extensions.editor.schema_view import SchemaView
from agentv.model.values.values import Span

_MOST_TARGETS = 500_000
"""Maximum size in bytes of a targets file, which is read for every completion."""


class Project(Struct, frozen=True):
    """The scope in which the names of a file are resolved.

    Attributes:
        directory: the file's directory; for a file in `.agentv`, the directory that contains `.agentv`.
        edits: absolute path → text of each open file.
    """

    directory: str
    root: str
    edits: Mapping[str, bytes]

    @classmethod
    def around(cls, path: str, edits: Mapping[str, bytes]) -> Project:
        """The project of a file."""
        leave_deleted_directory()
        above, inside, _ = path.partition(f"{os.sep}.agentv{os.sep}")
        directory = above if inside else str(Path(path).parent)
        return cls(directory, repository_root(directory), edits)

    def targets(self) -> Iterator[Name]:
        """The available targets, those of the closest file first."""
        for path in self._in_agentv("targets.yaml", "targets.yml"):
            data = self._data(path, _MOST_TARGETS)
            found = _targets(path, data) if data is not None else None
            yield from (name for name in (found.names if found else ()) if name.defines)

    def templates(self) -> dict[str, str]:
        """Name of each available template → its file."""
        found: dict[str, str] = {}
        boundary = self._boundary
        for folder in self._in_agentv("templates"):
            for name, file in templates_in(folder).items():
                if is_file(file) and boundary.admits(file):
                    found.setdefault(name, file)
        return found

    def assertion_types(self) -> dict[str, str]:
        """Name of each assertion type of the project → its file."""
        types = registries().custom(self.directory, self.root)
        folders = [Path(folder) for folder in types.searched if Path(folder).is_dir()]
        files = {file.stem.replace("_", "-"): str(file) for folder in folders for file in folder.iterdir()}
        return {name: files[name] for name in types.types if name in files}

    def schema(self, kind: FileKind) -> SchemaView | None:
        """The schema of a kind of file, or None if it has none."""
        if kind == "config":
            return None
        return _view(kind, self.directory, tuple(self.assertion_types()))

    def definitions(self, kind: str, text: str, path: str) -> Iterator[Span]:
        """The definitions of a name that a file uses."""
        if kind == "template":
            found = self.templates().get(text)
            yield from [Span(found, 1, 1, 1, 1)] if found else []
        elif kind == "target":
            yield from (name.span for name in self.targets() if name.text == text)
        else:
            data = self._data(path)
            own = index_of(path, data, "eval") if data is not None else None
            yield from (one.name for one in (own.cases if own else ()) if one.id == text)

    @property
    def _boundary(self) -> Boundary:
        return boundary_around(self.directory, self.root)

    def _data(self, path: str, most: int = MOST_BYTES) -> bytes | None:
        """The bytes of a file; None if it cannot be read or is outside the project."""
        try:
            return bytes_of(path, self.edits, self._boundary, most=most)
        except OSError:
            return None

    def _in_agentv(self, *names: str) -> Iterator[str]:
        for above in upwards(self.directory, self.root):
            for name in names:
                path = str(Path(above, ".agentv", name))
                if path in self.edits or Path(path).exists():
                    yield path


@lru_cache(maxsize=8)
def _targets(path: str, data: bytes) -> FileIndex | None:
    """The names of a targets file, cached until it changes."""
    return index_of(path, data, "targets")


@lru_cache(maxsize=16)
def _view(kind: str, directory: str, _types: tuple[str, ...]) -> SchemaView:
    """The schema of a kind of file, cached until the project's assertion types change."""
    return SchemaView(json.loads(schema_text(kind, directory)))
