"""Find the files that code of a repository imports, from its text. No code is run."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

from msgspec import Struct

from agentv.authoring.code.named_files import (
    Loads,
    Module,
    code_named,
    is_script,
    places_of_script,
    starts_programs,
    words_of_script,
)
from agentv.authoring.code.python_code import loads_of, relative_to
from agentv.authoring.source.files import SCRIPTS, is_code, is_directory, is_file, repository_root, upwards
from agentv.model.values.values import lazy_pattern

_TYPESCRIPT = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
"""TypeScript suffixes that an import of a JavaScript file may stand for."""

_CONFIGS = ("tsconfig.json", "jsconfig.json")
_NAMED = lazy_pattern(
    r"""(?:\b(?:from|import|require|require\.resolve|import\.meta\.resolve)\s*\(?|\bnew\s+(?:Worker|URL)\s*\()\s*"""
    r"""(["'`])([^"'`\n$]+)\1"""
)
_IN_DIRECTORY = lazy_pattern(
    r"""\b(?:import|require)\s*\(\s*(?:`(\.{1,2}/[^`$\n]*/)(?=[^`/]*\$\{)|(["'])(\.{1,2}/[^"'\n]*/)\2\s*\+)"""
)
"""An import of an unknown file in a known directory: import(`./plugins/${name}.js`)."""

_STARTS = lazy_pattern(
    r"\bchild_process\b|\bBun\.(?:spawn|\$)|\bDeno\.Command\b|\bexeca\b|\bnew\s+Function\s*\(|\bvm\.\w+\(|(?<![.\w])eval\("
)
_LOADS = lazy_pattern(
    r"""(?<![.\w])(?:import|require)\s*\(\s*(?!\s|["'`/)]|\.\.\.)|(?<![.\w])(?:import|require)\s*\(\s*`[^`]*\$"""
)
_REQUIRE_ALIAS = lazy_pattern(
    r"""=\s*(?:module\.)?require\s*(?:[;\n,)]|$)|\bmodule\.require\s*\(\s*(?:[^"'`\s]|(["'])[^"'\n]*\1\s*\+)"""
)
_CREATED = lazy_pattern(r"(\w+)\s*=\s*(?:\w+\.)?createRequire\(")
_CONCATENATED = lazy_pattern(r"""(?<![.\w])(?:import|require)\s*\(\s*(["'])[^"'\n]*\1\s*\+""")
_COMMENT = lazy_pattern(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = lazy_pattern(r",(\s*[}\]])")
_PACKAGE = lazy_pattern(r"(@[^/]+/[^/]+|[^/@.#][^/]*)(?:/(.*))?")
_LARGEST_PACKAGE = 1 << 20
_MOST_CONFIGS = 8


def loads_of_script(source: bytes) -> Loads:
    """The imports and directories that a JavaScript file loads."""
    text = source.decode(errors="replace")
    in_directory = list(_IN_DIRECTORY.finditer(text))
    computed = len(list(_LOADS.finditer(text))) + len(list(_CONCATENATED.finditer(text)))
    aliased = any(found[1] != "require" for found in _CREATED.finditer(text))
    aliased = aliased or _REQUIRE_ALIAS.search(text) is not None
    return Loads(
        names=dict.fromkeys(found[2] for found in _NAMED.finditer(text)),
        directories=dict.fromkeys(found[1] or found[3] for found in in_directory),
        unknown=computed > len(in_directory) or aliased or _STARTS.search(text) is not None,
    )


def files_of_name(name: str, path: str, root: str, homes: tuple[str, ...]) -> Iterator[str]:
    """Yield the files that an import may refer to, and the config files that decide it. They may not exist.

    Args:
        name: the import as authored: a relative path, `#name` of the package, or a package with an optional path.
        path: path of the file that contains it.
        root: root of the repository; nothing is searched above it.
        homes: further directories that are searched for modules.
    """
    directory = os.path.dirname(path)  # no Path is made here, since this runs for every import of every check
    if name.startswith(("./", "../", "/")) or name in (".", ".."):
        yield from script_files(os.path.normpath(os.path.join(directory, name)))
        return
    above = list(upwards(directory, root))
    if name.startswith("#"):
        yield from _package_imports(name, above)
        return
    yield from _tsconfig_paths(name, above)
    for home in homes:
        yield from script_files(os.path.join(home, name))
    found = _PACKAGE.fullmatch(name)
    for home in above if found is not None and not name.startswith(("node:", "bun:")) else ():
        package = os.path.join(home, "node_modules", found[1])  # type: ignore[index]  # found is not None here
        if is_directory(package):
            yield from _of_package(package, found[2] or "")  # type: ignore[index]
            return


def script_files(place: str) -> Iterator[str]:
    """Yield the files that the path of an import may refer to, with or without a suffix."""
    yield place
    stem, ending = os.path.splitext(place)
    yield from (stem + typed for typed in _TYPESCRIPT.get(ending, ()))
    for ending in (*SCRIPTS, ".json"):
        yield place + ending
        yield os.path.join(place, f"index{ending}")
    if is_file(os.path.join(place, "package.json")):
        yield from _of_package(place, "")


def _of_package(place: str, inner: str) -> Iterator[str]:
    """Yield the files that a path in a package may refer to. Links to the package are resolved.

    An installed package is represented by its `package.json`, which contains its version.
    """
    real = os.path.realpath(place)
    package_json = os.path.join(real, "package.json")
    yield package_json
    if f"{os.sep}node_modules{os.sep}" in real + os.sep:
        return
    facts = _json(package_json)
    key = f"./{inner}" if inner else "."
    written = [*_paths_in(_entry_for(facts.get("exports"), key))]
    if not inner:
        written += [one for name in ("main", "module", "browser", "source") if isinstance(one := facts.get(name), str)]
    for one in written:
        yield from _without_package_json(os.path.normpath(os.path.join(real, one)))
    yield from _without_package_json(os.path.join(real, inner) if inner else os.path.join(real, "index"))


def _without_package_json(place: str) -> Iterator[str]:
    return (one for one in script_files(place) if not one.endswith(f"{os.sep}package.json")) if place else iter(())


def _package_imports(name: str, above: list[str]) -> Iterator[str]:
    for home in above:
        package_json = os.path.join(home, "package.json")
        if is_file(package_json):
            yield package_json
            for one in _paths_in(_entry_for(_json(package_json).get("imports"), name)):
                yield from script_files(os.path.normpath(os.path.join(home, one)))
            return


def _tsconfig_paths(name: str, above: list[str]) -> Iterator[str]:
    """Yield the files that `paths` and `baseUrl` of a `tsconfig.json` map a name to, and that config."""
    for home in above:
        found = next((one for config in _CONFIGS if is_file(one := os.path.join(home, config))), None)
        if found is not None:
            for config, base, paths in _compiler_options(found, _MOST_CONFIGS):
                places = [*_paths_in(_entry_for(paths, name)), *((name,) if base else ())]
                start = os.path.join(os.path.dirname(config), base or ".")
                yield config
                for one in places:
                    yield from script_files(os.path.normpath(os.path.join(start, one)))
            return


def _compiler_options(config: str, left: int) -> Iterator[tuple[str, str, Any]]:
    """Yield the path, `baseUrl` and `paths` of a config and of those that it extends."""
    facts = _json(config)
    options = facts.get("compilerOptions")
    options = options if isinstance(options, Mapping) else {}
    base = options.get("baseUrl")
    yield config, base if isinstance(base, str) else "", options.get("paths")
    extended = facts.get("extends")
    for one in extended if isinstance(extended, list) else [extended]:
        if isinstance(one, str) and one.startswith(".") and left:
            place = os.path.normpath(os.path.join(os.path.dirname(config), one))
            yield from _compiler_options(place if place.endswith(".json") else f"{place}.json", left - 1)


def _entry_for(table: Any, name: str) -> Any:
    """The entry for a name in a mapping, with `*` filled in. A mapping without names is for the package itself."""
    if not isinstance(table, Mapping) or not any(
        key.startswith((".", "#")) or "*" in key or key == name for key in table
    ):
        return table if name == "." else None
    if name in table:
        return table[name]
    for key, value in sorted(table.items(), key=lambda item: -item[0].find("*")):  # the longest prefix wins
        before, star, after = key.partition("*")
        if star and name.startswith(before) and name.endswith(after) and len(name) >= len(before) + len(after):
            return _with_star(value, name[len(before) : len(name) - len(after)])
    return None


def _with_star(value: Any, star: str) -> Any:
    if isinstance(value, str):
        return value.replace("*", star)
    if isinstance(value, list):
        return [_with_star(one, star) for one in value]
    return {key: _with_star(one, star) for key, one in value.items()} if isinstance(value, Mapping) else None


def _paths_in(value: Any) -> Iterator[str]:
    """Yield all paths in an entry, whichever condition holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | Mapping):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _paths_in(one)


def _json(path: str) -> dict[str, Any]:
    """The object in a file of JSON with comments; {} if the file cannot be read."""
    try:
        state = os.stat(path)
        return _read_json(path, state.st_mtime_ns, state.st_ctime_ns, state.st_size)
    except (OSError, ValueError):
        return {}


@lru_cache(maxsize=256)
def _read_json(path: str, _written_ns: int, _changed_ns: int, size: int) -> dict[str, Any]:
    if size > _LARGEST_PACKAGE:
        return {}
    try:
        text = Path(path).read_text("utf-8-sig", errors="replace")
        bare = _TRAILING.sub(r"\1", _COMMENT.sub(lambda found: found[1] or "", text))
        given = json.loads(bare)
    except (OSError, ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


MOST_FILES = 500
"""Maximum number of files in one closure. Code that imports more is an installation, not a check."""

_LARGEST = 1 << 20
_KEPT = 4096
_SHEBANG = 128
_MOST_WALKED = 200

_PYTHON = (".py",)
_LOADED = (".py", ".pyc", *EXTENSION_SUFFIXES)
"""Suffixes of files that Python loads as modules. Compiled ones need no source."""

_CODE = _PYTHON + SCRIPTS
_PACKAGE_JSON = f"{os.sep}package.json"

_INSTALLED = lazy_pattern(r"[/\\](?:site-packages|dist-packages|node_modules)[/\\]")

_State = tuple[int, int, int] | None


class _Closure(Struct, frozen=True):
    """The files that a file imports, and the state of all files and directories that were examined to find them.

    `unknown` is True if one of them loads or starts files that its text does not name.
    """

    files: tuple[str, ...]
    states: dict[str, _State]
    unknown: bool

    def holds(self) -> bool:
        """Whether all examined files and directories are unchanged."""
        return all(_state(path) == state for path, state in self.states.items())


_known: dict[tuple[str, tuple[str, ...]], _Closure] = {}


def with_imports(path: str, homes: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """A path and, if it is code, the files of its repository that it imports or runs, directly or indirectly.

    Modules are searched for next to the file that names them, in every directory above up to the repository root, since
    Python may be started in one of them, and in directories that the code or the environment adds to Python's path. An
    installed package is represented by its `package.json`, which contains its version. For a shell script, a Makefile
    or the scripts of a `package.json`, the code that they name is included.

    Args:
        path: absolute path.
        homes: directories that the environment adds to the search for modules; None for those of this process.
    """
    found = _closure_of(path, homes)
    return (path,) if found is None else found.files


def loads_unknown(path: str, homes: tuple[str, ...] | None = None) -> bool:
    """Whether code, or a file that it imports, loads or starts files that its text does not name."""
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


def is_installed(path: str) -> bool:
    """Whether a file belongs to an installed package or to Python, not to the repository."""
    return _INSTALLED.search(path) is not None or path.startswith((sys.base_prefix + os.sep, sys.prefix + os.sep))


def module_files(directory: str, dotted: str) -> Iterator[str]:
    """Yield the files that a dotted name and its parent packages may refer to. They may not exist."""
    place = directory
    for name in dotted.split("."):
        place = os.path.join(place, name)
        for around in (place, os.path.join(place, "__init__")):
            yield from (around + ending for ending in _LOADED)


def python_path() -> list[str]:
    """The absolute directories in `PYTHONPATH` of this process."""
    return [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(one)]


def _is_script(path: str) -> bool:
    state = _state(path)
    return state is not None and _begins_as_script(path, *state)


@lru_cache(maxsize=4096)
def _begins_as_script(path: str, *_state: int) -> bool:
    try:
        with open(path, "rb") as file:
            return is_script(path, file.read(_SHEBANG))
    except OSError:  # such as for a directory
        return False


class _Search:
    """Finds the files of one closure. A directory that one of them adds to Python's path counts for all."""

    def __init__(self, path: str, homes: tuple[str, ...]) -> None:
        self._first = path
        self._root = repository_root(os.path.dirname(path)).rstrip(os.sep) + os.sep
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
                self._add(found)
        return _Closure(tuple(self._files), self._states, self._unknown)

    def _add(self, found: str) -> None:
        folder = _existing_parent(os.path.dirname(found))
        if folder not in self._states:
            self._states[folder] = _state(folder)
        if found in self._files or not is_file(found):
            return
        if not found.startswith(self._root):
            self._unknown = self._unknown or not is_installed(found)
        elif len(self._files) >= MOST_FILES:
            self._unknown = True
        elif found.endswith(_PACKAGE_JSON):
            self._files[found] = None
            self._states[found] = _state(found)
        elif _INSTALLED.search(found) is None:
            self._files[found] = None
            self._waiting.append(found)

    def _imported(self, path: str, state: tuple[int, int, int]) -> Iterator[str]:
        """Yield the paths that a file may import or run."""
        loads, directory = _loads(path, *state), os.path.dirname(path)
        above = list(upwards(directory, self._root.rstrip(os.sep)))
        others = (one for one in relative_to(loads.entered, above) if one.startswith(self._root) and is_directory(one))
        seen_from = [*above, *others]
        self._unknown = self._unknown or loads.unknown
        if path.endswith(_PYTHON):
            self._read.append(path)
        self._add_search_paths(relative_to(loads.homes, above))
        homes = list(self._homes)
        yield from _modules(loads.modules, seen_from, homes)
        yield from relative_to(loads.files, above)
        for word in loads.words:
            found = (os.path.normpath(os.path.join(home, word)) for home in seen_from)
            yield from (place for place in found if is_file(place) and is_code(place))
        for name in loads.names:
            yield from files_of_name(name, path, self._root.rstrip(os.sep), tuple(homes))
        for one in loads.directories:
            place = os.path.normpath(os.path.join(directory, one))
            yield from self._walked(place, (*SCRIPTS, ".json"))
        imported = loads.modules if loads.scans_packages else {}
        for place in (*relative_to(loads.walked, above), *_packages(loads.packages | imported, above, homes)):
            yield from self._walked(place)

    def _add_search_paths(self, homes: list[str]) -> None:
        added = [home for home in homes if home not in self._homes and is_directory(home)]
        if added:
            self._homes |= dict.fromkeys(added)
            self._waiting += self._read  # they may import from there
            self._read = []
        for home in homes:
            folder = _existing_parent(home)
            self._states[folder] = _state(folder)

    def _walked(self, directory: str, endings: tuple[str, ...] = _PYTHON) -> Iterator[str]:
        """Yield the code files in and below a directory, up to a maximum."""
        if not is_directory(directory):
            return
        self._states[directory] = _state(directory)
        found = list(islice(_below(directory, endings), _MOST_WALKED + 1))
        self._unknown = self._unknown or len(found) > _MOST_WALKED
        yield from found[:_MOST_WALKED]


def _modules(modules: Iterable[Module], above: list[str], homes: list[str]) -> Iterator[str]:
    for dots, name in modules:
        for home in above[dots - 1 : dots] if dots else (*homes, *above):
            if dots:
                yield os.path.join(home, "__init__.py")
            yield from module_files(home, name) if name else ()


def _packages(modules: Iterable[Module], above: list[str], homes: list[str]) -> Iterator[str]:
    """Yield the existing directories of packages."""
    for dots, name in modules:
        for home in above[dots - 1 : dots] if dots else (*homes, *above):
            place = os.path.join(home, *name.split(".")) if name else home
            if (name or dots) and is_directory(place):
                yield place


def _below(directory: str, endings: tuple[str, ...]) -> Iterator[str]:
    for place, inner, names in os.walk(directory):
        inner[:] = sorted(one for one in inner if not one.startswith((".", "__pycache__")) and one != "node_modules")
        yield from (os.path.join(place, name) for name in sorted(names) if name.endswith(endings))


@lru_cache(maxsize=4096)
def _loads(path: str, _written_ns: int, _changed_ns: int, size: int) -> Loads:
    """What a file loads or names; empty if it is not code, cannot be read, or is too large."""
    try:
        data = b"" if size > _LARGEST else Path(path).read_bytes()
    except OSError:
        data = b""
    if path.endswith(_CODE):
        found = loads_of(path, data) if path.endswith(_PYTHON) else loads_of_script(data)
        found.words = code_named(data) if starts_programs(data) else ()
    elif is_script(path, data):
        found = places_of_script(path, data)
        found.words = words_of_script(path, data)
    else:
        return Loads()
    return found


def files_of_module(dotted: str) -> Iterator[str]:
    """Yield the paths of an importable module and its parent packages, without importing them. They may not exist."""
    top, _, rest = dotted.partition(".")
    try:
        found = find_spec(top)
    except (ImportError, ValueError):
        return
    if found is None or (found.origin is None and not found.submodule_search_locations):
        return
    if found.origin is not None and os.path.isabs(found.origin):
        yield found.origin
    for home in (found.submodule_search_locations or ()) if rest else ():
        yield from module_files(home, rest)


def _state(path: str) -> _State:
    """Modification time, change time and size of a file or directory; None if none exists."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    known = S_ISREG(found.st_mode) or S_ISDIR(found.st_mode)
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size) if known else None


def _existing_parent(directory: str) -> str:
    """The directory, or its closest existing parent, whose time changes when the missing directory is created."""
    while not is_directory(directory) and os.path.dirname(directory) != directory:
        directory = os.path.dirname(directory)
    return directory
