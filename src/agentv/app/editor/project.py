"""Names of a project, as the file that an editor has open sees them: targets, templates, assertion types, files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from agentv.app.authored.schema import schema_text
from agentv.app.editor.file_kinds import FileKind, kind_of
from agentv.app.editor.index import FileIndex, Name, index_file
from agentv.app.editor.schema_view import SchemaView
from agentv.app.registries import registries
from agentv.authoring.loading.load import PASSED_OVER, collected
from agentv.authoring.source.files import repository_root, upwards
from agentv.errors import UsageError
from agentv.lazy_dataclass import dataclass
from agentv.model.values.span import Span

_SUFFIXES = (".yaml", ".yml")
_MOST_FILES = 5_000
"""Directories below a project that are searched for `.agentv`."""


@dataclass(frozen=True, slots=True)
class Project:
    """What names mean in the directory of a file.

    Attributes:
        directory: of the file; for a file in `.agentv`, the directory that holds it.
        edits: absolute path → text of each open file.
    """

    directory: str
    root: str
    edits: Mapping[str, bytes]

    @classmethod
    def around(cls, path: str, edits: Mapping[str, bytes]) -> Project:
        """The project of a file."""
        above, inside, _ = path.partition(f"{os.sep}.agentv{os.sep}")
        directory = above if inside else str(Path(path).parent)
        return cls(directory, repository_root(directory), edits)

    def targets(self) -> Iterator[Name]:
        """The targets in reach, closest file first."""
        for path in self._in_agentv("targets.yaml", "targets.yml"):
            found = index_file(path, self.edits, "targets")
            yield from (name for name in (found.names if found else ()) if name.defines)

    def templates(self) -> dict[str, str]:
        """Name of each template in reach → its file."""
        found: dict[str, str] = {}
        for folder in self._in_agentv("templates"):
            for file in sorted(Path(folder).iterdir()) if Path(folder).is_dir() else ():
                if file.suffix in _SUFFIXES:
                    found.setdefault(file.stem, str(file))
        return found

    def assertion_types(self) -> dict[str, str]:
        """Name of each assertion type of the project → its file."""
        types = registries().custom(self.directory, self.root)
        folders = [Path(folder) for folder in types.searched if Path(folder).is_dir()]
        files = {file.stem.replace("_", "-"): str(file) for folder in folders for file in folder.iterdir()}
        return {name: files[name] for name in types.types if name in files}

    def schema(self, kind: FileKind) -> SchemaView | None:
        """The schema of a kind of file; None if there is none."""
        if kind == "config":
            return None
        return _view(kind, self.directory, tuple(self.assertion_types()))

    def files(self) -> dict[str, FileKind]:
        """The authored files of the whole project that hold names: path → kind."""
        try:
            paths = collected(self.root)
        except UsageError:
            paths = []
        found: dict[str, FileKind] = dict.fromkeys(paths, "eval")
        for folder in _agentv_folders(self.root):
            for file in [*folder.glob("*.y*ml"), *folder.glob("templates/*.y*ml")]:
                if (kind := kind_of(str(file), "")) is not None:
                    found[str(file)] = kind
        for path, data in self.edits.items():
            if path.startswith(self.root) and (kind := kind_of(path, data.decode(errors="replace"))) is not None:
                found[path] = kind
        return {path: kind for path, kind in found.items() if path.endswith(_SUFFIXES)}

    def indexes(self) -> Iterator[FileIndex]:
        """The names of each authored file of the project that can be read, and of files that suites take cases from."""
        waiting = list(self.files().items())
        seen: set[str] = set()
        while waiting:
            path, kind = waiting.pop()
            found = index_file(path, self.edits, kind) if path not in seen else None
            seen.add(path)
            if found is not None:
                yield found
                waiting += [(source, "eval") for source in sources_of(found, self.root) if source not in seen]

    def template_of(self, name: str, path: str) -> str | None:
        """The file of the template that a name means in a file."""
        return Project.around(path, self.edits).templates().get(name)

    def definitions(self, kind: str, text: str, path: str) -> Iterator[Span]:
        """Where a name is given that a file uses."""
        if kind == "template":
            found = self.templates().get(text)
            yield from [Span(found, 1, 1, 1, 1)] if found else []
        elif kind == "target":
            yield from (name.span for name in self.targets() if name.text == text)
        else:
            own = index_file(path, self.edits, "eval")
            yield from (one.name for one in (own.cases if own else ()) if one.id == text)

    def _in_agentv(self, *names: str) -> Iterator[str]:
        for above in upwards(self.directory, self.root):
            for name in names:
                path = str(Path(above, ".agentv", name))
                if path in self.edits or Path(path).exists():
                    yield path


@lru_cache(maxsize=16)
def _view(kind: str, directory: str, _types: tuple[str, ...]) -> SchemaView:
    """Made once, until the project gets another assertion type."""
    return SchemaView(json.loads(schema_text(kind, directory)))


def sources_of(index: FileIndex, root: str) -> Iterator[str]:
    """The YAML files of a project that a suite takes cases from."""
    folder = Path(index.path).parent
    for source in index.sources:
        path = os.path.relpath(os.path.normpath(folder / source.removeprefix("file://")), root)
        if path.endswith(_SUFFIXES) and not path.startswith(os.pardir):
            yield from (map(str, Path(root).glob(path)) if "*" in path else [str(Path(root, path))])


def _agentv_folders(root: str) -> Iterator[Path]:
    for seen, (folder, below, _) in enumerate(os.walk(root)):
        if ".agentv" in below:
            yield Path(folder, ".agentv")
        below[:] = [name for name in below if name not in PASSED_OVER] if seen < _MOST_FILES else []
