"""The prompt library: its prompts, lookup by id or path, and creation of new prompts (SPEC section 11)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.prompt_library import (
    LIBRARY,
    exam_of,
    is_prompt_directory,
    library_of,
    library_reading,
    prompt_directories,
    read_meta,
)
from agentv.authoring.source.files import PROMPT_FILES, exists, is_directory, is_file, repository_root, shown
from agentv.authoring.source.ignores import without_ignored
from agentv.authoring.source.report import Report
from agentv.authoring.targets.registry import TargetRegistry
from agentv.errors import Diagnostic, LoadError, UsageError
from agentv.model.suite.exam import TARGET, PromptMeta
from agentv.prompts.gates import digests
from agentv.registry.types import Provider, Registry
from agentv.user_code.files import WrittenFiles, write_missing

_NO_LIBRARY = "no 'prompts' directory between here and the repository root"
_HINT = "agentv prompt init NAME creates one; 'prompts_dir' in .agentv/config.yaml sets another directory"


class LibraryPrompt(Struct, frozen=True):
    """A prompt: its directory and the content of its `meta.yaml`.

    Attributes:
        directory: absolute.
        targets: reads the targets named in exam logs; shared by prompts that are read together.
        diagnostics: problems in `meta.yaml`.
    """

    directory: str
    meta: PromptMeta
    targets: RecordedTargets
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def id(self) -> str:
        """The id that commands use for the prompt."""
        return self.meta.id


class Library(Struct, frozen=True):
    """The prompt library seen from a working directory.

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
    def root(self) -> str | None:
        """The library's absolute directory, or None if the project has no library.

        Raises:
            LoadError: the project's config is invalid.
        """
        reading = library_reading(self.working, self.env)
        found = library_of(self.working, reading)
        if reading.report.failed:
            raise LoadError(reading.report.diagnostics)
        return found

    def all(self) -> list[LibraryPrompt]:
        """Return every prompt, sorted by directory.

        Raises:
            LoadError: the project's config is invalid.
            UsageError: there is no library, or it contains no prompt.
        """
        return list(self._read(self._directories()))

    def named(self, names: Sequence[str]) -> list[LibraryPrompt]:
        """Return the prompts with these ids or paths (of a prompt's directory or of a file in it), without duplicates.

        Raises:
            LoadError: the project's config is invalid.
            UsageError: a name matches no prompt.
        """
        found = {one.directory: one for one in map(self.one, dict.fromkeys(names))}
        return list(found.values())

    def one(self, name: str) -> LibraryPrompt:
        """Return the prompt with an id or a path.

        Raises:
            LoadError: the project's config is invalid.
            UsageError: no prompt or several prompts have the id.
        """
        if os.sep in name or name in (os.curdir, os.pardir):
            return self.read(self._directory(name))
        root = self.root
        directories = prompt_directories(root) if root is not None else []
        near = [one for one in self._read(one for one in directories if Path(one).name == name) if one.id == name]
        found = near if len(near) == 1 else [one for one in self._read(directories) if one.id == name]
        if len(found) > 1:
            places = ", ".join(shown(one.directory) for one in found)
            raise UsageError(f"{len(found)} prompts have the id '{name}': {places}", "give the path of one")
        if not found and exists(str(Path(self.working, name))):
            return self.read(self._directory(name))
        if not found:
            raise self._unknown(name, root, directories)
        return found[0]

    def read(self, directory: str) -> LibraryPrompt:
        """Return the prompt in a directory."""
        return next(self._read((directory,)))

    def _directories(self) -> list[str]:
        root = self.root
        if root is None:
            raise UsageError(f"there is no prompt library here: {_NO_LIBRARY}", _HINT)
        found = prompt_directories(root)
        if not found:
            raise UsageError(f"{shown(root)} contains no prompts", _HINT)
        return found

    def _read(self, directories: Iterable[str]) -> Iterator[LibraryPrompt]:
        reading, targets = library_reading(self.working, self.env), RecordedTargets(self.env)
        for directory in directories:
            own = replace(reading, report=Report())
            meta = read_meta(directory, own)
            found = own.report.diagnostics
            # comments in `meta.yaml` suppress warnings; if there is a warning, the file could be read
            if meta.path is not None and any(one.severity == "warning" for one in found):
                found = without_ignored(found, {meta.path: Path(meta.path).read_bytes()}, reported=())
            yield LibraryPrompt(directory, meta, targets, found)

    def _directory(self, name: str) -> str:
        """Return the prompt's directory for a path to it or to a file in it."""
        path = os.path.normpath(os.path.join(self.working, name))  # noqa: PTH118  # Path keeps '..'
        directory = str(Path(path).parent) if is_file(path) else path
        if not is_directory(directory) or not is_prompt_directory(directory):
            raise UsageError(
                f"{name} is not a prompt",
                "a prompt's directory contains prompt.xml, prompt.md, prompt.txt or meta.yaml",
            )
        return directory

    def _unknown(self, name: str, root: str | None, directories: Sequence[str]) -> UsageError:
        from agentv.authoring.source.nearest import did_you_mean

        if root is None:
            return UsageError(f"no prompt '{name}': {_NO_LIBRARY}", _HINT)
        hint = did_you_mean(name, [one.id for one in self._read(directories)])
        return UsageError(f"no prompt '{name}' in {shown(root)}", hint or "list them with agentv prompt list")


class RecordedTargets:
    """Reads the targets named in exam logs; prompts with the same parent directory share a registry.

    Args:
        env: the environment of the process.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._registries: dict[str, TargetRegistry] = {}

    def digests(self, directory: str, recorded: Iterable[str]) -> dict[str, str]:
        """Return the current digests of the targets among a log row's files.

        Targets that are not configured, or that need an unset variable, are omitted.

        Args:
            directory: of the prompt.
            recorded: the names in the row's `files`.
        """
        wanted = [path for path in recorded if path.startswith(TARGET)]
        return digests(self._records(directory, wanted)) if wanted else {}

    def _records(self, directory: str, wanted: Iterable[str]) -> dict[str, bytes]:
        from agentv.authoring.loading.exams import target_record

        registry, found = self._registry(directory), {}
        for path in wanted:
            name, report = path.removeprefix(TARGET), Report()
            spec = registry.read_alone(name, report) if name in registry.entries else None
            if spec is not None and all(one.code != "unset-environment" for one in report.diagnostics):
                found[path] = target_record(spec, directory)
        return found

    def _registry(self, directory: str) -> TargetRegistry:
        from agentv.authoring.config import dotenv_of, merged
        from agentv.authoring.targets.suite_targets import open_registry

        own = any(exists(os.path.join(directory, name)) for name in (".agentv", ".env"))  # noqa: PTH118  # for thousands of prompts
        home = directory if own else os.path.dirname(directory)  # noqa: PTH120
        if home not in self._registries:
            reading = library_reading(home, self._env)
            dotenv = dotenv_of(home, reading.places.root, reading.reader, reading.report)
            reading = library_reading(home, merged(self._env, {}, dotenv))
            self._registries[home] = open_registry(home, self._providers, reading)
        return self._registries[home]

    @cached_property
    def _providers(self) -> Registry[Provider]:
        from agentv.app.registries import registries  # loaded only if a log names targets

        return registries().providers


class ChosenExams(Struct, frozen=True):
    """Paths of exams; `without_exam` has the ids of prompts that have none."""

    paths: tuple[str, ...]
    without_exam: tuple[str, ...] = ()


def exams_of(names: Sequence[str], *, everything: bool) -> ChosenExams:
    """Return the exams of the named prompts, or of all prompts; a path to a file is taken as an exam.

    Raises:
        LoadError: the project's config is invalid.
        UsageError: no prompt is named, a named prompt does not exist, or it has no exam.
    """
    if everything and names:
        raise UsageError("--all and names conflict; use one of them")
    if not everything and not names:
        raise UsageError("no prompt given", "give prompts, or use --all")
    library = Library.here()
    if everything:
        exams = {one.id: exam_of(one.directory) for one in library.all()}
        paths = tuple(path for path in exams.values() if path is not None)
        if not paths:
            raise UsageError("no prompt in the library has an exam")
        return ChosenExams(paths, tuple(name for name, path in exams.items() if path is None))
    return ChosenExams(tuple(dict.fromkeys(_exam(name, library) for name in names)))


def _exam(name: str, library: Library) -> str:
    path = Path(library.working, name)
    if path.is_file():
        return str(path)
    prompt = library.one(name)
    exam = exam_of(prompt.directory)
    if exam is None:
        hint = f"create one with agentv prompt init {prompt.id}"
        raise UsageError(f"'{prompt.id}' has no exam: there is no eval.yml in {shown(prompt.directory)}", hint)
    return exam


PromptFormat = Literal["xml", "md", "txt"]

_SHIPPED = Path(__file__).parent / "new_prompt"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ID_PLACEHOLDER = "PROMPT_ID"


def make_prompt(name: str, form: PromptFormat, library: Library) -> WrittenFiles:
    """Write the files of a prompt that do not exist yet. Existing files are not changed.

    Raises:
        LoadError: the project's config is invalid.
        UsageError: the name is not a valid id, or another prompt has it.
        StoreError: a file cannot be written.
    """
    if not _ID.fullmatch(name):
        raise UsageError(
            f"'{name}' is not a valid prompt id",
            "an id is a directory name: letters, digits, '-', '_' and '.', starting with a letter or a digit",
        )
    root = library.root
    directory = Path(root or str(Path(repository_root(library.working)) / LIBRARY)) / name
    for prompt in library.all() if root is not None and prompt_directories(root) else ():
        if prompt.id == name and prompt.directory != str(directory):  # ids must be unique
            raise UsageError(f"the id '{name}' is already used by {shown(prompt.directory)}", "choose another id")
    files = _files(directory, form)
    return write_missing(
        {
            path: (_SHIPPED / shipped).read_text(encoding="utf-8").replace(_ID_PLACEHOLDER, name)
            for path, shipped in files
        }
    )


def _files(directory: Path, form: PromptFormat) -> Iterator[tuple[Path, str]]:
    """Yield each file with the template for it. If the prompt has a text in another format, keep that file's name."""
    prompt = next((name for name in PROMPT_FILES if (directory / name).exists()), f"prompt.{form}")
    yield directory / prompt, f"prompt.{form}"
    yield directory / "meta.yaml", "meta.yaml"
    exam = directory / "eval.yaml"
    yield exam if exam.exists() else directory / "eval.yml", "eval.yml"
    yield directory / "examples" / "happy-path" / "inputs.yml", "inputs.yml"
