"""File lookup, glob patterns, and a record of the files that were read (SPEC sections 2 and 5)."""

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
"""Suffixes of files that hold a table with typed values."""

KEPT_PATHS = 4096
"""Maximum number of cached path lookups, so that memory does not grow with the number of cases."""

SKIPPED_DIRECTORIES = frozenset({".agentv", ".git", "node_modules", "__pycache__", ".venv"})
"""Names of directories that are not searched for eval files."""

MARK = b"agentv: ignore"
"""Bytes that a file must contain to be searched for ignore comments."""

SCRIPTS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_OTHER_CODE = (".py", ".sh", ".bash", ".zsh", ".rb", ".pl", ".php", ".lua", ".R", ".r", ".jl", ".go", ".rs", ".java")


PROMPT_FILES = ("prompt.xml", "prompt.md", "prompt.txt")
"""File names of a prompt's text; a directory holds one of them."""

META = "meta.yaml"
"""File name of a prompt's metadata."""

EXAM_FILES = ("eval.yml", "eval.yaml")
"""File names of the exam next to a prompt."""

INPUT_FILES = ("inputs.yml", "inputs.yaml")
"""File names of the inputs that a case of an exam reads from a directory."""

OF_PROMPTS = frozenset({*PROMPT_FILES, META})
"""File names that mark a directory as a prompt's."""


def is_exam(path: str) -> bool:
    """Whether a file is an exam by its name and the files next to it."""
    directory, name = os.path.split(path)
    return name in EXAM_FILES and any(Path(directory, other).is_file() for other in OF_PROMPTS)


def is_code(path: str) -> bool:
    """Whether a file has a source-code suffix or is executable."""
    return path.endswith((*SCRIPTS, *_OTHER_CODE)) or os.access(path, os.X_OK)


class DiskReader(Struct, eq=False):
    """The Reader for files on disk. Records a digest of every file that it reads.

    Attributes:
        edits: absolute path → bytes to read instead of the file's, such as an edit that is not saved yet.
        boundary: files that may be read; None: all.
        digests: absolute path → SHA-256 of the bytes read, in hexadecimal.
        marked: path → bytes of the YAML files with comments for agentv.
        kept: path → bytes of every file read; None: bytes are not kept.
    """

    edits: Mapping[str, bytes] = MappingProxyType({})
    boundary: Boundary | None = None
    digests: dict[str, str] = {}
    marked: dict[str, bytes] = {}
    kept: dict[str, bytes] | None = None

    def read(self, path: str) -> bytes:
        """The bytes of a file.

        Raises:
            OSError: the file cannot be read, or is a device or a pipe.
        """
        edited = self.edits.get(path)
        if edited is None:
            self._check(path)
            with open(path, "rb", buffering=0) as file:
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
        """Open a file for streaming, without recording its digest.

        Raises:
            OSError: the file cannot be opened, or is a device or a pipe.
        """
        edited = self.edits.get(path)
        if edited is None:
            self._check(path)
        return open(path, "rb") if edited is None else BytesIO(edited)  # closed by the caller

    def remember(self, path: str) -> None:
        """Record the digest of a file that is too large to hold in memory.

        Raises:
            OSError: the file cannot be read, or is a device or a pipe.
        """
        self._check(path)
        with open(path, "rb") as file:
            self.digests[path] = hashlib.file_digest(file, "sha256").hexdigest()

    def _check(self, path: str) -> None:
        """Raise if a path must not be read.

        Raises:
            OSError: the path is outside the boundary, missing, or a device or a pipe.
        """
        if self.boundary is not None:
            self.boundary.check(path)
        if not S_ISREG(os.stat(path).st_mode) and not path.startswith("/dev/fd/") and not is_directory(path):
            raise OSError(EINVAL, "it is a device or a pipe, expected a file", path)


def repository_root(directory: str) -> str:
    """The nearest parent with `.git`, or the highest with `.agentv` except the home directory (SPEC section 2).

    If there is neither, the working directory if it contains the directory, and otherwise the directory itself.
    """
    parents = list(upwards(directory, ""))
    for parent in parents:
        if os.path.exists(os.path.join(parent, ".git")):  # called for every parent of every suite
            return parent
    home = str(Path.home())
    for parent in reversed(parents):
        if parent != home and is_directory(os.path.join(parent, ".agentv")):
            return parent
    working = str(Path.cwd())
    return working if directory == working or directory.startswith(working + os.sep) else directory


# of `os.path`, as `Path` raises if an authored name is too long
exists, is_file, is_directory = os.path.exists, os.path.isfile, os.path.isdir


def upwards(directory: str, root: str) -> Iterator[str]:
    """The directory and its parents up to the root, closest first."""
    while True:
        yield directory
        above = os.path.dirname(directory)  # called for every parent of every suite
        if directory in (root, above):
            return
        directory = above


def nearest_in_agentv(directory: str, root: str, *names: str) -> tuple[str | None, list[str]]:
    """The closest `.agentv/NAME` in a directory or its parents (or None), and every path that was tried."""
    tried = []
    for parent in upwards(directory, root):
        for name in names:
            path = os.path.join(parent, ".agentv", name)
            tried.append(path)
            if exists(path):
                return path, tried
    return None, tried


def templates_in(folder: str) -> dict[str, str]:
    """Map the name of each template in a `.agentv/templates` folder, relative to it and without suffix, to its file."""
    found: dict[str, str] = {}
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(names):
            stem, ending = os.path.splitext(name)
            if ending in {".yaml", ".yml"} and not name.startswith("."):
                path = os.path.join(place, name)
                found.setdefault(os.path.relpath(os.path.join(place, stem), folder), path)
    return found


def template_home(path: str) -> str | None:
    """The directory that contains the `.agentv` of a template, or None if the file is not in `.agentv/templates`."""
    home, inside, _ = path.partition(os.path.join(os.sep, ".agentv", "templates", ""))
    return home if inside else None


def is_of_project(file: Path) -> bool:
    """Whether a file is a targets or configuration file directly in `.agentv`."""
    return file.suffix in (".yaml", ".yml") and file.parent.name == ".agentv" and file.stem in _OF_PROJECT


_OF_PROJECT = ("targets", "providers", "config", "config.local")
_DOTTED = ("./", "../")


class Places(Struct, frozen=True):
    """Base directories for the relative and absolute paths of one suite.

    Attributes:
        suite: directory of the eval file; for files in `.agentv`, the directory that contains `.agentv`; without a
            file, the working directory.
        root: the repository's root.
        alone: search only `suite`, not the directory of the file that contains a path.
        climbs: search a path such as `docs/a.md` in the directories above `suite`, too.
        typed: paths come from the command line, where `/a.py` means the file system's root before the repository's.
        on_path: called for every path that was found, with the path as authored, its position, and the file.
        boundary: files that may be read; None: all.
        confined: a file from a git host can name only files of its own repository.
        beside: for files in `.agentv`, the eval file's directory: their paths are not relative to it, but authors may
            expect them to be.
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
        """The same places without `climbs`, for an `include`."""
        return replace(self, climbs=False, _found={})

    def admits(self, path: str) -> bool:
        """Whether a path may be read."""
        return self.boundary is None or self.typed or self.boundary.admits(path)

    def leaves(self, written: str, mentioned_in: str) -> bool:
        """Whether any file that a path may mean is outside the boundary."""
        return not all(map(self.admits, self._candidates(written, mentioned_in)))

    def is_above(self, found: str, written: str, mentioned_in: str) -> bool:
        """Whether a path was found only by searching the directories above `suite`."""
        return self.climbs and found not in self._near(written, mentioned_in)

    def expected(self, written: str, mentioned_in: str) -> str | None:
        """How to write a missing path, if the file exists above `suite` or next to another file; otherwise None."""
        if checkout_of(mentioned_in) is not None:
            return None
        path = written.removeprefix("file://").lstrip("/")
        start = self.suite if self.alone else os.path.dirname(mentioned_in)
        beside = (self.beside, os.path.dirname(mentioned_in)) if self.beside is not None else ()
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
        """The files that a path may mean without climbing."""
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
        """The files that a path may mean in `suite` and each directory above it, up to the repository's root."""
        for home in upwards(self.suite, self.root):
            found = os.path.normpath(str(Path(home) / path))
            if found.startswith(self.root.rstrip(os.sep) + os.sep):
                yield found


_CHECKOUT = lazy_pattern(r".*/cache/repos/(?:github\.com|gitlab\.com|bitbucket\.org)/[^@]+@[0-9a-f]{40,64}(?=/)")


def checkout_of(path: str) -> str | None:
    """The directory of the cached commit that a file belongs to, or None (SPEC section 5)."""
    found = _CHECKOUT.match(path) if "@" in path else None
    return found[0] if found else None


_HOME = lazy_pattern(rb'"[^"]*/cache/repos/(?=(?:github\.com|gitlab\.com|bitbucket\.org)/)')


def without_home(written: bytes) -> bytes:
    """JSON with the paths of files from git hosts shortened to start at the host's name, the same on every machine."""
    return _HOME.sub(b'"', written) if b"/cache/repos/" in written else written


def shown(path: str) -> str:
    """A path as shown in messages: relative to the working directory, unless that takes three or more `..`."""
    try:
        relative = os.path.relpath(path)
    except ValueError:
        return path
    return path if relative.startswith(".." + os.sep + ".." + os.sep + "..") else relative


EVERYWHERE: Final = "**"


def literal_part(pattern: str) -> str:
    """The leading directories of a pattern, up to its first part with a wildcard."""
    parts = pattern.split("/")
    first = next((place for place, part in enumerate(parts) if has_magic(part)), len(parts))
    return "/".join(parts[:first])


def climbs(pattern: str) -> bool:
    """Whether a pattern contains `..` after its first wildcard, so that it can match anywhere."""
    return ".." in pattern.removeprefix(literal_part(pattern)).split("/")


def matched(pattern: str, base: str) -> list[str]:
    """The paths below a directory that match a pattern, relative to the directory and sorted, as in `glob`.

    Hidden names match only a part that begins with a dot. Directories that cannot be read are skipped.
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
        for entry in _entries(os.path.join(base, inside)):  # called for every file of a tree
            if not entry.name.startswith("."):
                path = os.path.join(inside, entry.name)
                yield from _below(base, path, parts, seen) if _is_directory(entry) else ()
                yield from (path,) if not rest and not _is_directory(entry) else ()
    elif has_magic(part):
        for entry in _entries(os.path.join(base, inside)):
            hidden = entry.name.startswith(".") and not part.startswith(".")
            if not hidden and _compiled(part).match(entry.name) is not None:
                yield from _below(base, os.path.join(inside, entry.name), rest, seen)
    else:
        path = os.path.join(inside, part)
        if os.path.lexists(os.path.join(base, path)):
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
"""Maximum number of files that one list of patterns may match."""


def files_of_globs(globs: FileGlobs) -> tuple[str, ...]:
    """The files that the patterns match: absolute paths, sorted, at most `MOST_FILES`."""
    home = escape(globs.cwd.rstrip("/"))
    found = (
        normpath(path)
        for pattern in globs.patterns
        for path in iglob(f"{home}/{pattern.removeprefix('./')}", recursive=True)  # `Path.glob` follows no links
        if is_file(path)
    )
    return tuple(sorted(set(islice(found, MOST_FILES))))
