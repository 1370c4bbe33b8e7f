"""The files that code of a repository imports, read from what it says: none of it is run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from msgspec import Struct

from agentv.authoring.code.named_files import (
    ScriptPlaces,
    code_named,
    is_script,
    places_of_script,
    starts_programs,
    words_of_script,
)
from agentv.authoring.code.python_code import Loads, Module, loads_of, relative_to
from agentv.authoring.code.script_imports import SCRIPTS, ScriptLoads, files_of_name, loads_of_script
from agentv.authoring.source.files import is_directory, is_file, repository_root, upwards
from agentv.model.values.lazy_pattern import lazy_pattern

MOST_FILES = 500
"""Files of one closure; what imports more is an installation, and no check."""

_LARGEST = 1 << 20
_KEPT = 4096
_SHEBANG = 128
_MOST_WALKED = 200

_PYTHON = (".py",)
_LOADED = (".py", ".pyc", *EXTENSION_SUFFIXES)
"""Endings of what Python loads as a module; compiled ones go by themselves, without a source."""

_CODE = _PYTHON + SCRIPTS
_OTHER_CODE = (".sh", ".bash", ".zsh", ".rb", ".pl", ".php", ".lua", ".R", ".r", ".jl", ".go", ".rs", ".java")
_DESCRIBED = f"{os.sep}package.json"

_INSTALLED = lazy_pattern(r"[/\\](?:site-packages|dist-packages|node_modules)[/\\]")

_State = tuple[int, int, int] | None


class _Closure(Struct, frozen=True):
    """The files that one imports, and the state of all that it was read from: directories change with their names.

    `unknown`: one of them loads or starts files that its text does not name.
    """

    files: tuple[str, ...]
    states: dict[str, _State]
    unknown: bool

    def holds(self) -> bool:
        """Whether it is unchanged."""
        return all(_state(path) == state for path, state in self.states.items())


_known: dict[tuple[str, tuple[str, ...]], _Closure] = {}


def with_imports(path: str, homes: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """A path and, if it is code, the files of its repository that it imports or runs, directly or indirectly.

    A module is searched next to the file that names it, in every directory above up to the repository's root, because
    Python may have been started in one of them, and where the code, or the environment, adds a directory to Python's
    path. Of installed packages only `package.json` is included, which contains the version. Of a shell script, a
    Makefile and the scripts of a `package.json` the code that they name is included.

    Args:
        path: absolute.
        homes: directories in which the environment searches for modules; None: those of this process.
    """
    found = _closure_of(path, homes)
    return (path,) if found is None else found.files


def loads_unknown(path: str, homes: tuple[str, ...] | None = None) -> bool:
    """Whether code, or something that it imports, loads or starts something that its text does not show."""
    found = _closure_of(path, homes)
    return found is not None and found.unknown


def _closure_of(path: str, homes: tuple[str, ...] | None) -> _Closure | None:
    if not path.startswith(os.sep) or not (path.endswith(_CODE) or _is_script(path)):
        return None
    key = path, tuple(python_path()) if homes is None else homes
    found = _known.get(key)
    if found is None or not found.holds():
        if len(_known) >= _KEPT:
            _known.clear()
        found = _known[key] = _Search(*key).closure()
    return found


def is_code(path: str) -> bool:
    """Whether a file is code by its name, or may be run."""
    return path.endswith((*_CODE, *_OTHER_CODE)) or os.access(path, os.X_OK)


def is_installed(path: str) -> bool:
    """Whether a file belongs to an installation, and not to the repository."""
    return _INSTALLED.search(path) is not None or path.startswith((sys.base_prefix + os.sep, sys.prefix + os.sep))


def module_files(directory: str, dotted: str) -> Iterator[str]:
    """The files that may be a module, and the packages around it; not all of them need be there."""
    place = directory
    for name in dotted.split("."):
        place = os.path.join(place, name)  # noqa: PTH118  # called for every import of every check
        for around in (place, os.path.join(place, "__init__")):  # noqa: PTH118  # as above
            yield from (around + ending for ending in _LOADED)


def python_path() -> list[str]:
    """The directories that the environment of this process puts on Python's path."""
    return [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(one)]  # noqa: PTH117  # as above


def _is_script(path: str) -> bool:
    state = _state(path)
    return state is not None and _begins_as_script(path, *state)


@lru_cache(maxsize=4096)
def _begins_as_script(path: str, *_state: int) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # as above
            return is_script(path, file.read(_SHEBANG))
    except OSError:  # a directory, too
        return False


class _Search:
    """Finds the files of one closure. What one of them puts on Python's path is there for all."""

    def __init__(self, path: str, homes: tuple[str, ...]) -> None:
        self._first = path
        self._root = repository_root(os.path.dirname(path)).rstrip(os.sep) + os.sep  # noqa: PTH120  # as above
        self._files = {path: None}
        self._states: dict[str, _State] = {}
        self._homes = dict.fromkeys(homes)
        self._waiting = [path]
        self._read: list[str] = []
        self._unknown = False

    def closure(self) -> _Closure:
        while self._waiting:
            current = self._waiting.pop()
            self._states[current] = state = _state(current)
            for found in self._imported(current, state) if state is not None else ():
                self._take(found)
        return _Closure(tuple(self._files), self._states, self._unknown)

    def _take(self, found: str) -> None:
        folder = _standing(os.path.dirname(found))  # noqa: PTH120  # as above
        if folder not in self._states:
            self._states[folder] = _state(folder)
        if found in self._files or not is_file(found):
            return
        if not found.startswith(self._root):
            self._unknown = self._unknown or not is_installed(found)
        elif len(self._files) >= MOST_FILES:
            self._unknown = True
        elif found.endswith(_DESCRIBED):
            self._files[found] = None
            self._states[found] = _state(found)
        elif _INSTALLED.search(found) is None:
            self._files[found] = None
            self._waiting.append(found)

    def _imported(self, path: str, state: tuple[int, int, int]) -> Iterator[str]:
        """The paths that may be what a file imports or runs."""
        directory = os.path.dirname(path)  # noqa: PTH120  # as above
        above = list(upwards(directory, self._root.rstrip(os.sep)))
        seen_from = above
        if not path.endswith(_CODE):
            places = _script_places(path, *state)
            self._unknown = self._unknown or places.unknown
            others = relative_to((*places.goes, *places.programs), above)
            seen_from = [*above, *(one for one in others if one.startswith(self._root) and is_directory(one))]
            self._search_in(relative_to(places.homes, above))
            yield from relative_to(places.sourced, above)
            yield from _modules(tuple((0, one) for one in places.modules), seen_from, list(self._homes))
        for word in _words(path, *state):
            found = (os.path.normpath(os.path.join(home, word)) for home in seen_from)  # noqa: PTH118  # as above
            yield from (place for place in found if is_file(place) and is_code(place))
        if path.endswith(SCRIPTS):
            yield from self._of_script(path, _script_loads(path, *state))
        elif path.endswith(_PYTHON):
            self._read.append(path)
            loads = _loads(path, *state)
            self._unknown = self._unknown or loads.unknown
            self._search_in(relative_to(loads.homes, above))
            yield from self._of_python(loads, above)

    def _search_in(self, homes: list[str]) -> None:
        added = [home for home in homes if home not in self._homes and is_directory(home)]
        if added:
            self._homes |= dict.fromkeys(added)
            self._waiting += self._read  # they may import from there
            self._read = []
        for home in homes:
            folder = _standing(home)
            self._states[folder] = _state(folder)

    def _of_script(self, path: str, loads: ScriptLoads) -> Iterator[str]:
        self._unknown = self._unknown or loads.unknown
        for name in loads.names:
            yield from files_of_name(name, path, self._root.rstrip(os.sep), tuple(self._homes))
        for one in loads.directories:
            place = os.path.normpath(os.path.join(os.path.dirname(path), one))  # noqa: PTH118, PTH120  # as above
            yield from self._walked(place, (*SCRIPTS, ".json"))

    def _of_python(self, loads: Loads, above: list[str]) -> Iterator[str]:
        homes = list(self._homes)
        yield from _modules(loads.modules, above, homes)
        for place in relative_to(loads.files, above):
            yield place
        for place in relative_to(loads.walked, above):
            yield from self._walked(place)
        imported = loads.modules if loads.finds else ()
        for place in _packages((*loads.packages, *imported), above, homes):
            yield from self._walked(place)

    def _walked(self, directory: str, endings: tuple[str, ...] = _PYTHON) -> Iterator[str]:
        """The code in a directory and below it, a bounded number."""
        if not is_directory(directory):
            return
        self._states[directory] = _state(directory)
        found = list(islice(_below(directory, endings), _MOST_WALKED + 1))
        self._unknown = self._unknown or len(found) > _MOST_WALKED
        yield from found[:_MOST_WALKED]


def _modules(modules: tuple[Module, ...], above: list[str], homes: list[str]) -> Iterator[str]:
    for dots, name in modules:
        for home in above[dots - 1 : dots] if dots else (*homes, *above):
            if dots:
                yield os.path.join(home, "__init__.py")  # noqa: PTH118  # as above
            yield from module_files(home, name) if name else ()


def _packages(modules: tuple[Module, ...], above: list[str], homes: list[str]) -> Iterator[str]:
    """The directories of packages."""
    for dots, name in modules:
        for home in above[dots - 1 : dots] if dots else (*homes, *above):
            place = os.path.join(home, *name.split(".")) if name else home  # noqa: PTH118  # as above
            if (name or dots) and is_directory(place):
                yield place


def _below(directory: str, endings: tuple[str, ...]) -> Iterator[str]:
    for place, inner, names in os.walk(directory):
        inner[:] = sorted(one for one in inner if not one.startswith((".", "__pycache__")) and one != "node_modules")
        yield from (os.path.join(place, name) for name in sorted(names) if name.endswith(endings))  # noqa: PTH118  # as above


@lru_cache(maxsize=4096)
def _loads(path: str, _written_ns: int, _changed_ns: int, size: int) -> Loads:
    return loads_of(path, _read(path, size))


@lru_cache(maxsize=4096)
def _script_loads(path: str, _written_ns: int, _changed_ns: int, size: int) -> ScriptLoads:
    return loads_of_script(_read(path, size))


@lru_cache(maxsize=4096)
def _script_places(path: str, _written_ns: int, _changed_ns: int, size: int) -> ScriptPlaces:
    data = _read(path, size)
    return places_of_script(path, data) if is_script(path, data) else ScriptPlaces()


@lru_cache(maxsize=4096)
def _words(path: str, _written_ns: int, _changed_ns: int, size: int) -> tuple[str, ...]:
    """What a file says that may name code that it runs."""
    data = _read(path, size)
    if path.endswith(_CODE):
        return code_named(data) if starts_programs(data) else ()
    return words_of_script(path, data) if is_script(path, data) else ()


def files_of_module(dotted: str) -> Iterator[str]:
    """Path of an importable module and of the packages around it; it is found, not imported."""
    top, _, rest = dotted.partition(".")
    try:
        found = find_spec(top)
    except (ImportError, ValueError):
        return
    if found is None or (found.origin is None and not found.submodule_search_locations):
        return
    if found.origin is not None and os.path.isabs(found.origin):  # noqa: PTH117  # as above
        yield found.origin
    for home in (found.submodule_search_locations or ()) if rest else ():
        yield from module_files(home, rest)


def _read(path: str, size: int) -> bytes:
    """The bytes of a file; none where it cannot be read, or is too large for code."""
    if size > _LARGEST:
        return b""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _state(path: str) -> _State:
    """When a file or a directory was written and changed, and its size; None where there is neither."""
    try:
        found = os.stat(path)  # noqa: PTH116  # as above
    except (OSError, ValueError):
        return None
    known = S_ISREG(found.st_mode) or S_ISDIR(found.st_mode)
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size) if known else None


def _standing(directory: str) -> str:
    """The directory, or the closest above it that is there: its time changes when what lacks is made."""
    while not is_directory(directory) and os.path.dirname(directory) != directory:  # noqa: PTH120  # as above
        directory = os.path.dirname(directory)  # noqa: PTH120  # as above
    return directory
