"""The files that code of a repository imports or runs, directly or indirectly. None of it is run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from msgspec import Struct

from agentv.authoring.code.code_text import CODE, PYTHON, Loads, Module, is_script, loads_of
from agentv.authoring.source.files import SCRIPTS, is_code, is_directory, is_file, repository_root, upwards
from agentv.model.values.lazy_pattern import lazy_pattern

MOST_FILES = 500
"""Files of one closure; what imports more is an installation, and no check."""

_LARGEST = 1 << 20
_KEPT = 4096
_SHEBANG = 128
_MOST_WALKED = 200

_LOADED = (*PYTHON, ".pyc", *EXTENSION_SUFFIXES)
"""Endings of what Python loads as a module; compiled ones go by themselves, without a source."""

_DESCRIBED = f"{os.sep}package.json"
_TYPED = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
"""What TypeScript calls by the name that it is compiled to."""

_PACKAGE = lazy_pattern(r"@[^/]+/[^/]+|[^/@.#][^/]*")
_MAPPED = lazy_pattern(r"[#~@](?!agentv/)")
"""How the name of a module begins that a `tsconfig.json` or a `package.json` may map to a path."""

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
    if not path.startswith(os.sep) or not (path.endswith(CODE) or _is_script(path)):
        return None
    key = path, tuple(python_path()) if homes is None else homes
    found = _known.get(key)
    if found is None or not found.holds():
        if len(_known) >= _KEPT:
            _known.clear()
        found = _known[key] = _Search(*key).closure()
    return found


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
        above = list(upwards(os.path.dirname(path), self._root.rstrip(os.sep)))  # noqa: PTH120  # as above
        loads = _loads(path, *state)
        self._unknown = self._unknown or loads.unknown
        others = _relative_to(loads.goes, above)
        seen_from = [*above, *(one for one in others if one.startswith(self._root) and is_directory(one))]
        if path.endswith(PYTHON):
            self._read.append(path)
        self._search_in(_relative_to(loads.homes, above))
        yield from _relative_to(loads.sourced, above)
        yield from _modules(loads.modules, seen_from, list(self._homes))
        for name in loads.names:
            yield from self._of_name(name, path, above)
        for word in loads.words:
            found = (os.path.normpath(os.path.join(home, word)) for home in seen_from)  # noqa: PTH118  # as above
            yield from (place for place in found if is_file(place) and is_code(place))

    def _search_in(self, homes: list[str]) -> None:
        added = [home for home in homes if home not in self._homes and is_directory(home)]
        if added:
            self._homes |= dict.fromkeys(added)
            self._waiting += self._read  # they may import from there
            self._read = []
        for home in homes:
            folder = _standing(home)
            self._states[folder] = _state(folder)

    def _of_name(self, name: str, path: str, above: list[str]) -> Iterator[str]:
        """The files that a name may mean in a file of JavaScript; not all of them need exist.

        Of an installed package its `package.json` stands for all of it, since that tells its version; of one that is
        linked to, all code counts.
        """
        if name.startswith(("./", "../", "/")) or name in (".", ".."):
            yield from _script_files(os.path.normpath(os.path.join(os.path.dirname(path), name)))  # noqa: PTH118, PTH120  # as above
            return
        for home in self._homes:
            yield from _script_files(os.path.join(home, name))  # noqa: PTH118  # as above
        found = _PACKAGE.match(name)
        places = (os.path.join(home, "node_modules", found[0]) for home in above) if found is not None else ()  # noqa: PTH118  # as above
        package = next(filter(is_directory, places), None)
        if package is None:
            self._unknown = self._unknown or _MAPPED.match(name) is not None
            return
        real = os.path.realpath(package)
        yield real + _DESCRIBED
        if f"{os.sep}node_modules{os.sep}" not in real + os.sep:
            yield from self._walked(real)

    def _walked(self, directory: str) -> Iterator[str]:
        """The code in a directory and below it, a bounded number."""
        self._states[directory] = _state(directory)
        found = list(islice(_below(directory), _MOST_WALKED + 1))
        self._unknown = self._unknown or len(found) > _MOST_WALKED
        yield from found[:_MOST_WALKED]


def _script_files(place: str) -> Iterator[str]:
    """The files that a path without an ending may mean."""
    yield place
    stem, ending = os.path.splitext(place)  # noqa: PTH122  # as above
    yield from (stem + typed for typed in _TYPED.get(ending, ()))
    for ending in (*SCRIPTS, ".json"):
        yield place + ending
        yield os.path.join(place, f"index{ending}")  # noqa: PTH118  # as above


def _modules(modules: tuple[Module, ...], above: list[str], homes: list[str]) -> Iterator[str]:
    for dots, name in modules:
        for home in above[dots - 1 : dots] if dots else (*homes, *above):
            if dots:
                yield os.path.join(home, "__init__.py")  # noqa: PTH118  # as above
            yield from module_files(home, name) if name else ()


def _relative_to(homes: Iterable[str], above: list[str]) -> list[str]:
    """Paths as they may be meant: relative ones count from the file's directory, or from one above it."""
    places = (os.path.normpath(os.path.join(home, one)) for one in homes for home in above)  # noqa: PTH118  # as above
    return list(dict.fromkeys(places))


def _below(directory: str) -> Iterator[str]:
    for place, inner, names in os.walk(directory):
        inner[:] = sorted(one for one in inner if not one.startswith((".", "__pycache__")) and one != "node_modules")
        yield from (os.path.join(place, name) for name in sorted(names) if name.endswith(SCRIPTS))  # noqa: PTH118  # as above


@lru_cache(maxsize=4096)
def _loads(path: str, _written_ns: int, _changed_ns: int, size: int) -> Loads:
    return loads_of(path, _read(path, size))


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
