"""File lookup, patterns of paths, and a record of the files that were read (SPEC sections 2 and 5)."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from errno import EINVAL
from fnmatch import translate
from functools import lru_cache
from glob import escape, has_magic, iglob
from io import BytesIO
from itertools import islice
from os.path import normpath
from pathlib import Path
from stat import S_ISREG
from types import MappingProxyType
from typing import BinaryIO, Final

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.source.boundary import Boundary
from agentv.model.values.values import Span, lazy_pattern
from agentv.registry.fields import FileGlobs

PARQUET = (".parquet",)
ARROW = (".arrow", ".feather", ".ipc")
EXCEL = (".xlsx", ".xlsm")
TABLES = (*PARQUET, *ARROW, *EXCEL)
"""Suffixes of files that hold a table whose values have types."""

KEPT_PATHS = 4096
"""Paths that are looked for once; more are looked for again, so that a million cases need no memory."""

PASSED_OVER = frozenset({".agentv", ".git", "node_modules", "__pycache__", ".venv"})
"""Directories that are not searched: no project keeps its eval files there."""

MARK = b"agentv: ignore"
"""What a file must hold to be searched at all."""

SCRIPTS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_OTHER_CODE = (".py", ".sh", ".bash", ".zsh", ".rb", ".pl", ".php", ".lua", ".R", ".r", ".jl", ".go", ".rs", ".java")


PROMPT_FILES = ("prompt.xml", "prompt.md", "prompt.txt")
"""What a prompt's text may be called; a directory holds one of them."""

META = "meta.yaml"
"""What says who a prompt is."""

EXAM_FILES = ("eval.yml", "eval.yaml")
"""What the exam beside a prompt is called."""

INPUT_FILES = ("inputs.yml", "inputs.yaml")
"""What the inputs that a case of an exam takes from a directory are called."""

OF_PROMPTS = frozenset({*PROMPT_FILES, META})
"""Files that make a directory that of a prompt."""


def is_exam(path: str) -> bool:
    """Whether a file is an exam by its name and the files next to it."""
    directory, name = os.path.split(path)
    return name in EXAM_FILES and any(Path(directory, other).is_file() for other in OF_PROMPTS)


def is_code(path: str) -> bool:
    """Whether a file is code by its name, or may be run."""
    return path.endswith((*SCRIPTS, *_OTHER_CODE)) or os.access(path, os.X_OK)


class DiskReader(Struct, eq=False):
    """The Reader that reads disks. Remembers a digest of all that it has read.

    Attributes:
        edits: absolute path → what is read in place of the file's own bytes, before it is written there.
        boundary: what may be read; None: everything.
        digests: absolute path → the digest of what was read.
        marked: path → bytes of the YAML files that hold comments for agentv.
        kept: path → bytes of all files, where they are wanted; None: none is kept.
    """

    edits: Mapping[str, bytes] = MappingProxyType({})
    boundary: Boundary | None = None
    digests: dict[str, str] = {}
    marked: dict[str, bytes] = {}
    kept: dict[str, bytes] | None = None

    def read(self, path: str) -> bytes:
        """The bytes of a file.

        Raises:
            OSError: it cannot be read, or has no end.
        """
        edited = self.edits.get(path)
        if edited is None:
            self._check(path)
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # a Path would add nothing
                data = file.read()
        else:
            data = edited
        self.digests[path] = hashlib.sha256(data).hexdigest()
        if self.kept is not None:
            self.kept[path] = data
        if MARK in data and path.endswith((".yaml", ".yml")):
            self.marked[path] = data
        return data

    def open(self, path: str) -> BinaryIO:
        """A file to be read bit by bit; its digest is not taken.

        Raises:
            OSError: it cannot be opened, or has no end.
        """
        edited = self.edits.get(path)
        if edited is None:
            self._check(path)
        return open(path, "rb") if edited is None else BytesIO(edited)  # noqa: PTH123  # whoever asked closes it

    def remember(self, path: str) -> None:
        """Store the digest of a file that is too large to be held in memory.

        Raises:
            OSError: it cannot be read, or is endless.
        """
        self._check(path)
        with open(path, "rb") as file:  # noqa: PTH123  # a Path would add nothing
            self.digests[path] = hashlib.file_digest(file, "sha256").hexdigest()

    def _check(self, path: str) -> None:
        """Refuse what may not be read, and what has no end.

        Raises:
            OSError: it is such a file, or is not there.
        """
        if self.boundary is not None:
            self.boundary.check(path)
        if not S_ISREG(os.stat(path).st_mode) and not path.startswith("/dev/fd/") and not is_directory(path):  # noqa: PTH116  # as exists
            raise OSError(EINVAL, "it is a device or a pipe, expected a file", path)


def repository_root(directory: str) -> str:
    """The nearest parent with `.git`, else the highest with `.agentv` (never the home directory), else the working one.

    Source: SPEC section 2.
    """
    parents = list(upwards(directory, ""))
    for parent in parents:
        if os.path.exists(os.path.join(parent, ".git")):  # noqa: PTH110, PTH118  # called for every parent of every suite
            return parent
    home = str(Path.home())
    for parent in reversed(parents):
        if parent != home and is_directory(os.path.join(parent, ".agentv")):  # noqa: PTH118  # as above
            return parent
    working = str(Path.cwd())
    return working if directory == working or directory.startswith(working + os.sep) else directory


# at an authored path, for which `Path` would raise if a name is too long
exists, is_file, is_directory = os.path.exists, os.path.isfile, os.path.isdir


def upwards(directory: str, root: str) -> Iterator[str]:
    """The directory and its parents up to the root, closest first."""
    while True:
        yield directory
        above = os.path.dirname(directory)  # noqa: PTH120  # this and the next are called for every parent of every suite
        if directory in (root, above):
            return
        directory = above


def nearest_in_agentv(directory: str, root: str, *names: str) -> tuple[str | None, list[str]]:
    """The closest `.agentv/NAME` above a directory, and every path that was tried."""
    tried = []
    for parent in upwards(directory, root):
        for name in names:
            path = os.path.join(parent, ".agentv", name)  # noqa: PTH118
            tried.append(path)
            if exists(path):
                return path, tried
    return None, tried


def templates_in(folder: str) -> dict[str, str]:
    """The templates of a `.agentv/templates`: their names, with the folders that they are in, and their files."""
    found: dict[str, str] = {}
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(names):
            stem, ending = os.path.splitext(name)  # noqa: PTH122  # as exists
            if ending in {".yaml", ".yml"} and not name.startswith("."):
                path = os.path.join(place, name)  # noqa: PTH118  # as exists
                found.setdefault(os.path.relpath(os.path.join(place, stem), folder), path)  # noqa: PTH118  # as exists
    return found


def template_home(path: str) -> str | None:
    """The directory that contains the `.agentv` of a template; None: the file is not in `.agentv/templates`."""
    home, inside, _ = path.partition(os.path.join(os.sep, ".agentv", "templates", ""))  # noqa: PTH118  # as exists
    return home if inside else None


def is_of_project(file: Path) -> bool:
    """Whether a file is one that `.agentv` itself holds: targets, or a configuration."""
    return file.suffix in (".yaml", ".yml") and file.parent.name == ".agentv" and file.stem in _OF_PROJECT


_OF_PROJECT = ("targets", "providers", "config", "config.local")
_DOTTED = ("./", "../")


class Places(Struct, frozen=True):
    """Base directories for the relative and absolute paths of one suite.

    Attributes:
        suite: directory of the eval file; for files in `.agentv`, the one that contains it; else the working directory.
        root: the repository's root.
        alone: search only `suite`, not the directory of the file that contains a path.
        climbs: search a path such as `docs/a.md` in the directories above `suite`, too.
        typed: paths come from the command line, where `/a.py` means the system's before the repository's.
        on_path: called with every path that was found: as authored, its position, and the file.
        boundary: files that may be read; None: all.
        confined: a file from a git host can name only files of its own repository.
        beside: of files in `.agentv`, the eval file's directory, where their paths do not begin but may be expected to.
    """

    suite: str
    root: str
    alone: bool = False
    climbs: bool = True
    typed: bool = False
    on_path: Callable[[str, Span, str], None] | None = None
    boundary: Boundary | None = None
    confined: bool = False
    beside: str | None = None
    _found: dict[tuple[str, str], tuple[str | None, tuple[str, ...]]] = field(default_factory=dict)

    def find(self, written: str, mentioned_in: str) -> tuple[str | None, tuple[str, ...]]:
        """The file or directory that a written path means, and every path that was tried (SPEC section 5)."""
        key = (written, mentioned_in)
        found = self._found.get(key)
        if found is None:
            tried = tuple(filter(self.admits, self._candidates(written, mentioned_in)))
            found = (next((candidate for candidate in tried if exists(candidate)), None), tried)
            if self.typed and self.boundary is not None and found[0] is not None:
                self.boundary.typed.add(found[0])
            if len(self._found) < KEPT_PATHS:
                self._found[key] = found
        return found

    def without_climbing(self) -> Places:
        """The same for an `include`, which is never searched in the directories above."""
        return replace(self, climbs=False, _found={})

    def admits(self, path: str) -> bool:
        """Whether a path may be read."""
        return self.boundary is None or self.typed or self.boundary.admits(path)

    def leaves(self, written: str, mentioned_in: str) -> bool:
        """Whether a path that was not found may mean something outside the repository."""
        return not all(map(self.admits, self._candidates(written, mentioned_in)))

    def is_above(self, found: str, written: str, mentioned_in: str) -> bool:
        """Whether a path was found in a directory above those that it begins in."""
        return self.climbs and found not in self._near(written, mentioned_in)

    def expected(self, written: str, mentioned_in: str) -> str | None:
        """How to write the file that a missing path may mean: it is above, or beside another file."""
        if checkout_of(mentioned_in) is not None:
            return None
        path = written.removeprefix("file://").lstrip("/")
        start = self.suite if self.alone else os.path.dirname(mentioned_in)  # noqa: PTH120  # a text
        beside = (self.beside, os.path.dirname(mentioned_in)) if self.beside is not None else ()  # noqa: PTH120  # as above
        tried = (*(os.path.normpath(f"{home}{os.sep}{path}") for home in beside), *self._above(path))
        found = next((one for one in tried if self.admits(one) and exists(one)), None)
        if found is None:
            return None
        relative = os.path.relpath(found, start)
        return relative if self.alone or relative.startswith("..") else f"./{relative}"

    def _candidates(self, written: str, mentioned_in: str) -> list[str]:
        near, path = self._near(written, mentioned_in), written.removeprefix("file://")
        climbs = self.climbs and not self.alone and checkout_of(mentioned_in) is None
        above = self._above(path) if climbs and not path.startswith(("/", *_DOTTED)) else ()
        return list(dict.fromkeys((*near, *above)))

    def _near(self, written: str, mentioned_in: str) -> list[str]:
        """What a path means from where it begins."""
        path = written.removeprefix("file://")
        tree = checkout_of(mentioned_in)
        if tree is not None:
            beside = tree if path.startswith("/") else str(Path(mentioned_in).parent)
            alone = self.confined or path.startswith("/")
            pairs = [(tree, beside)] if alone else [(tree, beside), (self.root, self.suite)]
            found = [(top, os.path.normpath(f"{home}{os.sep}{path}")) for top, home in pairs]
            return [one for top, one in found if one.startswith(top.rstrip(os.sep) + os.sep)]
        if path.startswith("/"):
            own = os.path.normpath(path)
            tried = [os.path.normpath(self.root + path), *([own] if written.startswith("file://") else [])]
            return list(dict.fromkeys((own, *tried) if self.typed else tried))
        homes = (self.suite,) if self.alone else (str(Path(mentioned_in).parent), self.suite)
        return list(dict.fromkeys(os.path.normpath(str(Path(home) / path)) for home in homes))

    def _above(self, path: str) -> Iterator[str]:
        """What a path means from each directory above the eval file, up to the repository's root, and never outside."""
        for home in upwards(self.suite, self.root):
            found = os.path.normpath(str(Path(home) / path))
            if found.startswith(self.root.rstrip(os.sep) + os.sep):
                yield found


_CHECKOUT = lazy_pattern(r".*/cache/repos/(?:github\.com|gitlab\.com|bitbucket\.org)/[^@]+@[0-9a-f]{40,64}(?=/)")


def checkout_of(path: str) -> str | None:
    """The directory of the commit that a file out of a git host belongs to (SPEC section 5)."""
    found = _CHECKOUT.match(path) if "@" in path else None
    return found[0] if found else None


_HOME = lazy_pattern(rb'"[^"]*/cache/repos/(?=(?:github\.com|gitlab\.com|bitbucket\.org)/)')


def without_home(written: bytes) -> bytes:
    """JSON with the paths of files from git hosts made independent of the machine: they start at the host's name."""
    return _HOME.sub(b'"', written) if b"/cache/repos/" in written else written


def shown(path: str) -> str:
    """A path as a person in the working directory would type it."""
    try:
        relative = os.path.relpath(path)
    except ValueError:
        return path
    return path if relative.startswith(".." + os.sep + ".." + os.sep + "..") else relative


EVERYWHERE: Final = "**"


def literal_part(pattern: str) -> str:
    """The directories that a pattern begins with, before its first part that is one."""
    parts = pattern.split("/")
    first = next((place for place, part in enumerate(parts) if has_magic(part)), len(parts))
    return "/".join(parts[:first])


def climbs(pattern: str) -> bool:
    """Whether a pattern leaves a directory after its first wildcard, so that it can lead anywhere."""
    return ".." in pattern.removeprefix(literal_part(pattern)).split("/")


def matched(pattern: str, base: str) -> list[str]:
    """The paths below a directory that match, relative to it and sorted, as `glob` has it.

    Hidden names match only a part that begins with a dot. What cannot be read matches nothing.
    """
    parts = [part for part in pattern.split("/") if part not in {"", "."}]
    return sorted({path for path in _below(base, "", tuple(parts), set()) if path})


def _below(base: str, inside: str, parts: Sequence[str], seen: set[tuple[str, int]]) -> Iterator[str]:
    key = (inside, len(parts))
    if key in seen:
        return
    seen.add(key)
    if not parts:
        yield inside
        return
    part, rest = parts[0], parts[1:]
    if part == EVERYWHERE:
        yield from _below(base, inside, rest, seen)
        for entry in _entries(os.path.join(base, inside)):  # noqa: PTH118  # texts, for every file of a tree
            if not entry.name.startswith("."):
                path = os.path.join(inside, entry.name)  # noqa: PTH118  # as above
                yield from _below(base, path, parts, seen) if _is_directory(entry) else ()
                yield from (path,) if not rest and not _is_directory(entry) else ()
    elif has_magic(part):
        for entry in _entries(os.path.join(base, inside)):  # noqa: PTH118  # as above
            hidden = entry.name.startswith(".") and not part.startswith(".")
            if not hidden and _compiled(part).match(entry.name) is not None:
                yield from _below(base, os.path.join(inside, entry.name), rest, seen)  # noqa: PTH118  # as above
    else:
        path = os.path.join(inside, part)  # noqa: PTH118  # as above
        if os.path.lexists(os.path.join(base, path)):  # noqa: PTH118  # as above
            yield from _below(base, path, rest, seen)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory or ".") as entries:
            return list(entries)
    except OSError:
        return []


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


@lru_cache(maxsize=256)
def _compiled(part: str) -> re.Pattern[str]:
    return re.compile(translate(part))


MOST_FILES = 10_000
"""Files that one list of patterns may name."""


def files_of_globs(globs: FileGlobs) -> tuple[str, ...]:
    """The files that the patterns name, absolute and sorted, a bounded number."""
    home = escape(globs.cwd.rstrip("/"))
    found = (
        normpath(path)
        for pattern in globs.patterns
        for path in iglob(f"{home}/{pattern.removeprefix('./')}", recursive=True)  # noqa: PTH207  # Path's follows no links
        if is_file(path)
    )
    return tuple(sorted(set(islice(found, MOST_FILES))))
