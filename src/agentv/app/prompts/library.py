"""The prompts of a library, and those that a command line names (SPEC section 11)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from agentv.app.prompts.recorded_targets import RecordedTargets
from agentv.authoring.prompt_library.library import is_prompt_directory, library_of, library_reading, prompt_directories
from agentv.authoring.prompt_library.meta import read_meta
from agentv.authoring.source.files import exists, is_directory, is_file, shown
from agentv.authoring.source.ignores import without_ignored
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, LoadError, UsageError
from agentv.model.suite.exam import PromptMeta

_NO_LIBRARY = "no 'prompts' directory between here and the repository root"
_HINT = "agentv prompt init NAME creates one; 'prompts_dir' in .agentv/config.yaml sets another directory"


@dataclass(frozen=True, slots=True)
class LibraryPrompt:
    """One prompt: where it is, and what its `meta.yaml` says.

    Attributes:
        directory: absolute.
        targets: reads the targets that evidence names; prompts that are read together share it.
        diagnostics: what is wrong in `meta.yaml`.
    """

    directory: str
    meta: PromptMeta
    targets: RecordedTargets
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def id(self) -> str:
        """Id by which commands name it."""
        return self.meta.id


@dataclass(frozen=True, slots=True)
class Library:
    """The prompts that there are, from where a command is given.

    Attributes:
        working: the working directory, absolute.
        env: the environment of the process.
    """

    working: str
    env: Mapping[str, str]

    @classmethod
    def here(cls) -> Library:
        """The library of the working directory."""
        return cls(str(Path.cwd()), dict(os.environ))

    @property
    def place(self) -> str | None:
        """Its absolute directory, or None if the project has no library.

        Raises:
            LoadError: the project's config is wrong.
        """
        reading = library_reading(self.working, self.env)
        found = library_of(self.working, reading)
        if reading.report.failed:
            raise LoadError(reading.report.diagnostics)
        return found

    def all(self) -> list[LibraryPrompt]:
        """Every prompt, sorted by directory.

        Raises:
            LoadError: the project's config is wrong.
            UsageError: there is no library, or it contains no prompt.
        """
        return list(self._read(self._directories()))

    def named(self, names: Sequence[str]) -> list[LibraryPrompt]:
        """The prompts of ids, or of paths to their directories or to a file in one; each once.

        Raises:
            LoadError: the project's config is wrong.
            UsageError: a name matches no prompt.
        """
        found = {one.directory: one for one in map(self.one, dict.fromkeys(names))}
        return list(found.values())

    def one(self, name: str) -> LibraryPrompt:
        """The prompt of an id or a path.

        Raises:
            LoadError: the project's config is wrong.
            UsageError: no prompt or several prompts have the id.
        """
        if os.sep in name or name in (os.curdir, os.pardir):
            return self.read(self._directory(name))
        place = self.place
        directories = prompt_directories(place) if place is not None else []
        near = [one for one in self._read(one for one in directories if Path(one).name == name) if one.id == name]
        found = near if len(near) == 1 else [one for one in self._read(directories) if one.id == name]
        if len(found) > 1:
            places = ", ".join(shown(one.directory) for one in found)
            raise UsageError(f"{len(found)} prompts have the id '{name}': {places}", "give the path of one")
        if not found and exists(str(Path(self.working, name))):
            return self.read(self._directory(name))
        if not found:
            raise self._unknown(name, place, directories)
        return found[0]

    def read(self, directory: str) -> LibraryPrompt:
        """The prompt of a directory."""
        return next(self._read((directory,)))

    def _directories(self) -> list[str]:
        place = self.place
        if place is None:
            raise UsageError(f"there is no prompt library here: {_NO_LIBRARY}", _HINT)
        found = prompt_directories(place)
        if not found:
            raise UsageError(f"{shown(place)} contains no prompts", _HINT)
        return found

    def _read(self, directories: Iterable[str]) -> Iterator[LibraryPrompt]:
        reading, targets = library_reading(self.working, self.env), RecordedTargets(self.env)
        for directory in directories:
            own = replace(reading, report=Report())
            meta = read_meta(directory, own)
            yield LibraryPrompt(directory, meta, targets, _unsilenced(own.report.diagnostics, meta))

    def _directory(self, name: str) -> str:
        """The prompt's directory that a path means: the directory itself, or a file in it."""
        path = os.path.normpath(os.path.join(self.working, name))  # noqa: PTH118  # Path keeps '..'
        directory = str(Path(path).parent) if is_file(path) else path
        if not is_directory(directory) or not is_prompt_directory(directory):
            raise UsageError(
                f"{name} is not a prompt",
                "a prompt's directory contains prompt.xml, prompt.md, prompt.txt or meta.yaml",
            )
        return directory

    def _unknown(self, name: str, place: str | None, directories: Sequence[str]) -> UsageError:
        from agentv.authoring.source.nearest import did_you_mean

        if place is None:
            return UsageError(f"no prompt '{name}': {_NO_LIBRARY}", _HINT)
        hint = did_you_mean(name, [one.id for one in self._read(directories)])
        return UsageError(f"no prompt '{name}' in {shown(place)}", hint or "list them with agentv prompt list")


def _unsilenced(found: tuple[Diagnostic, ...], meta: PromptMeta) -> tuple[Diagnostic, ...]:
    """What no comment in `meta.yaml` silences. A warning says that the file could be read, an error does not."""
    if meta.path is None or not any(one.severity == "warning" for one in found):
        return found
    return without_ignored(found, {meta.path: Path(meta.path).read_bytes()}, reported=())
