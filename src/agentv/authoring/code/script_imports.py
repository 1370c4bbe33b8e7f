"""Modules that JavaScript and TypeScript code loads, and the files that a name in it may mean. Nothing is run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentv.authoring.source.files import is_directory, is_file, upwards
from agentv.model.values.lazy_pattern import lazy_pattern

SCRIPTS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_TYPED = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
"""What TypeScript calls by the name that it is compiled to."""

_CONFIGS = ("tsconfig.json", "jsconfig.json")
_NAMED = lazy_pattern(
    r"""(?:\b(?:from|import|require|require\.resolve|import\.meta\.resolve)\s*\(?|\bnew\s+(?:Worker|URL)\s*\()\s*"""
    r"""(["'`])([^"'`\n$]+)\1"""
)
_BEGUN = lazy_pattern(
    r"""\b(?:import|require)\s*\(\s*(?:`(\.{1,2}/[^`$\n]*/)(?=[^`/]*\$\{)|(["'])(\.{1,2}/[^"'\n]*/)\2\s*\+)"""
)
"""`import(`./plugins/${name}.js`)`: one of a directory."""

_STARTS = lazy_pattern(
    r"\bchild_process\b|\bBun\.(?:spawn|\$)|\bDeno\.Command\b|\bexeca\b|\bnew\s+Function\s*\(|\bvm\.\w+\(|(?<![.\w])eval\("
)
_LOADS = lazy_pattern(
    r"""(?<![.\w])(?:import|require)\s*\(\s*(?!\s|["'`/)]|\.\.\.)|(?<![.\w])(?:import|require)\s*\(\s*`[^`]*\$"""
)
_HANDED_ON = lazy_pattern(
    r"""=\s*(?:module\.)?require\s*(?:[;\n,)]|$)|\bmodule\.require\s*\(\s*(?:[^"'`\s]|(["'])[^"'\n]*\1\s*\+)"""
)
_CREATED = lazy_pattern(r"(\w+)\s*=\s*(?:\w+\.)?createRequire\(")
_PUT_TOGETHER = lazy_pattern(r"""(?<![.\w])(?:import|require)\s*\(\s*(["'])[^"'\n]*\1\s*\+""")
_COMMENT = lazy_pattern(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = lazy_pattern(r",(\s*[}\]])")
_PACKAGE = lazy_pattern(r"(@[^/]+/[^/]+|[^/@.#][^/]*)(?:/(.*))?")
_LARGEST = 1 << 20
_MOST_CONFIGS = 8


class ScriptLoads(Struct, frozen=True):
    """Names and directories that one file loads.

    Attributes:
        names: as authored.
        directories: relative paths of directories of which it may load any file.
        unknown: it loads or starts something that its text does not show.
    """

    names: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    unknown: bool = False


def loads_of_script(source: bytes) -> ScriptLoads:
    """The names and directories that a file loads."""
    text = source.decode(errors="replace")
    names = dict.fromkeys(found[2] for found in _NAMED.finditer(text))
    directories = dict.fromkeys(found[1] or found[3] for found in _BEGUN.finditer(text))
    begun = len(list(_BEGUN.finditer(text)))
    put_together = len(list(_LOADS.finditer(text))) + len(list(_PUT_TOGETHER.finditer(text)))
    created = any(found[1] != "require" for found in _CREATED.finditer(text))
    created = created or _HANDED_ON.search(text) is not None
    unknown = put_together > begun or created or _STARTS.search(text) is not None
    return ScriptLoads(tuple(names), tuple(directories), unknown)


def files_of_name(name: str, path: str, root: str, homes: tuple[str, ...]) -> Iterator[str]:
    """The files that a name may mean in a file, and the files that determine it; not all of them need exist.

    Args:
        name: as authored: a relative path, `#name` of the package, or a package with a path in it.
        path: of the file that contains it.
        root: of the repository; nothing is searched above it.
        homes: further directories in which modules are searched.
    """
    directory = os.path.dirname(path)  # noqa: PTH120  # for every import of every check
    if name.startswith(("./", "../", "/")) or name in (".", ".."):
        yield from script_files(os.path.normpath(os.path.join(directory, name)))  # noqa: PTH118  # as above
        return
    above = list(upwards(directory, root))
    if name.startswith("#"):
        yield from _own_names(name, above)
        return
    yield from _mapped(name, above)
    for home in homes:
        yield from script_files(os.path.join(home, name))  # noqa: PTH118  # as above
    found = _PACKAGE.fullmatch(name)
    for home in above if found is not None and not name.startswith(("node:", "bun:")) else ():
        package = os.path.join(home, "node_modules", found[1])  # type: ignore[index]  # noqa: PTH118  # it matches
        if is_directory(package):
            yield from _of_package(package, found[2] or "")  # type: ignore[index]  # as above
            return


def script_files(place: str) -> Iterator[str]:
    """The files that a path without an ending may mean."""
    yield place
    stem, ending = os.path.splitext(place)  # noqa: PTH122  # as above
    yield from (stem + typed for typed in _TYPED.get(ending, ()))
    for ending in (*SCRIPTS, ".json"):
        yield place + ending
        yield os.path.join(place, f"index{ending}")  # noqa: PTH118  # as above
    if is_file(os.path.join(place, "package.json")):  # noqa: PTH118  # as above
        yield from _of_package(place, "")


def _of_package(place: str, inner: str) -> Iterator[str]:
    """What a package gives under a path: one that is linked to counts where it lies.

    Of one that is installed its `package.json` stands for all of it, since that tells its version.
    """
    real = os.path.realpath(place)
    described = os.path.join(real, "package.json")  # noqa: PTH118  # as above
    yield described
    if f"{os.sep}node_modules{os.sep}" in real + os.sep:
        return
    facts = _json(described)
    key = f"./{inner}" if inner else "."
    written = [*_conditions(_chosen(facts.get("exports"), key))]
    if not inner:
        written += [one for name in ("main", "module", "browser", "source") if isinstance(one := facts.get(name), str)]
    for one in written:
        yield from _without_package(os.path.normpath(os.path.join(real, one)))  # noqa: PTH118  # as above
    yield from _without_package(os.path.join(real, inner) if inner else os.path.join(real, "index"))  # noqa: PTH118  # as above


def _without_package(place: str) -> Iterator[str]:
    return (one for one in script_files(place) if not one.endswith(f"{os.sep}package.json")) if place else iter(())


def _own_names(name: str, above: list[str]) -> Iterator[str]:
    for home in above:
        described = os.path.join(home, "package.json")  # noqa: PTH118  # as above
        if is_file(described):
            yield described
            for one in _conditions(_chosen(_json(described).get("imports"), name)):
                yield from script_files(os.path.normpath(os.path.join(home, one)))  # noqa: PTH118  # as above
            return


def _mapped(name: str, above: list[str]) -> Iterator[str]:
    """What `paths` and `baseUrl` of a `tsconfig.json` make of a name."""
    for home in above:
        found = next((one for config in _CONFIGS if is_file(one := os.path.join(home, config))), None)  # noqa: PTH118  # as above
        if found is not None:
            for config, base, paths in _compiler_options(found, _MOST_CONFIGS):
                places = [*_conditions(_chosen(paths, name)), *((name,) if base else ())]
                start = os.path.join(os.path.dirname(config), base or ".")  # noqa: PTH118, PTH120  # as above
                yield config
                for one in places:
                    yield from script_files(os.path.normpath(os.path.join(start, one)))  # noqa: PTH118  # as above
            return


def _compiler_options(config: str, left: int) -> Iterator[tuple[str, str, Any]]:
    """Of a config and those that it extends: the file, its `baseUrl` and its `paths`."""
    facts = _json(config)
    options = facts.get("compilerOptions")
    options = options if isinstance(options, Mapping) else {}
    base = options.get("baseUrl")
    yield config, base if isinstance(base, str) else "", options.get("paths")
    extended = facts.get("extends")
    for one in extended if isinstance(extended, list) else [extended]:
        if isinstance(one, str) and one.startswith(".") and left:
            place = os.path.normpath(os.path.join(os.path.dirname(config), one))  # noqa: PTH118, PTH120  # as above
            yield from _compiler_options(place if place.endswith(".json") else f"{place}.json", left - 1)


def _chosen(table: Any, name: str) -> Any:
    """What a table of names gives for one, with `*` filled in; a table without names is for the package itself."""
    if not isinstance(table, Mapping) or not any(
        key.startswith((".", "#")) or "*" in key or key == name for key in table
    ):
        return table if name == "." else None
    if name in table:
        return table[name]
    for key, value in table.items():
        before, star, after = key.partition("*")
        if star and name.startswith(before) and name.endswith(after) and len(name) >= len(before) + len(after):
            return _filled(value, name[len(before) : len(name) - len(after)])
    return None


def _filled(value: Any, star: str) -> Any:
    if isinstance(value, str):
        return value.replace("*", star)
    if isinstance(value, list):
        return [_filled(one, star) for one in value]
    return {key: _filled(one, star) for key, one in value.items()} if isinstance(value, Mapping) else None


def _conditions(value: Any) -> Iterator[str]:
    """All that it may be, whichever condition holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | Mapping):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _conditions(one)


def _json(path: str) -> dict[str, Any]:
    """What a file of JSON with comments says; nothing where it says none."""
    try:
        state = os.stat(path)  # noqa: PTH116  # as above
        return _read(path, state.st_mtime_ns, state.st_ctime_ns, state.st_size)
    except (OSError, ValueError):
        return {}


@lru_cache(maxsize=256)
def _read(path: str, _written_ns: int, _changed_ns: int, size: int) -> dict[str, Any]:
    if size > _LARGEST:
        return {}
    try:
        text = Path(path).read_text("utf-8-sig", errors="replace")
        bare = _TRAILING.sub(r"\1", _COMMENT.sub(lambda found: found[1] or "", text))
        given = json.loads(bare)
    except (OSError, ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}
