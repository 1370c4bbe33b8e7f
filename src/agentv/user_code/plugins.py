"""Plugins: entry points of installed packages, and the tables of extensions.

Entry points are found from metadata alone, and imported on first use. The search opens `entry_points.txt` in each
`*.dist-info` and `*.egg-info` directory on `sys.path`, and parses those that name one of agentv's groups. That takes
2 ms for each run, instead of 30 to 150 ms with `importlib.metadata`. As there, the first of several distributions with
the same name counts.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

from agentv.errors import PluginError
from agentv.model.values.values import lazy_pattern
from agentv.registry.extensions import (
    CASE_KEYS,
    COMMAND_SECTIONS,
    COMMANDS,
    DIALECTS,
    ENDPOINTS,
    EXPORT_FORMATS,
    OPTIONS,
    PAGES,
    PORTS,
    SCHEMA_DEFS,
    SIGNS,
    SUITE_KEYS,
    extensions,
    kinds,
    loaded,
    registered,
    reserved,
)
from agentv.registry.plugins import (
    ANY_NAME,
    EXTENSIONS,
    GROUPS,
    LoadedPlugin,
    NameRules,
    Plugin,
    PluginCode,
    PluginSource,
    Problem,
)
from agentv.user_code.guard import ForeignError, foreign_code, output_to_stderr
from agentv.version import __version__

MOST_FILES = 5_000
"""Most files of a plugin that its digest covers."""

_AGENTV_GROUP = lazy_pattern(rb"^[ \t]*\[agentv\.", re.MULTILINE)
_VALUE = lazy_pattern(r"(?P<module>\w+(?:\.\w+)*)(?:\s*:\s*(?P<attribute>\w+(?:\.\w+)*))?\s*(?:\[.*\])?")


class BadPluginError(Exception):
    """A plugin's entry point or table is invalid. `file` and `line` are its place."""

    def __init__(self, message: str, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.file = file
        self.line = line


def installed_plugins() -> tuple[Plugin, ...]:
    """Return the entry points of installed packages in agentv's groups, in the order of `sys.path`. Import nothing."""
    seen: set[str] = set()
    found: list[Plugin] = []
    for path in sys.path:
        directory = path or os.curdir
        try:
            changed_ns = os.stat(directory).st_mtime_ns  # noqa: PTH116
        except (OSError, ValueError):
            changed_ns = 0
        for distribution, plugins in _found_in(os.path.abspath(directory), changed_ns):  # noqa: PTH100  # keeps symlinks
            if distribution not in seen:
                seen.add(distribution)
                found += plugins
    return tuple(found)


@lru_cache(maxsize=4096)  # larger than any sys.path: with a smaller cache, each search would read everything again
def _found_in(directory: str, changed_ns: int) -> tuple[tuple[str, tuple[Plugin, ...]], ...]:  # noqa: ARG001  # part of the cache key
    """Return the distributions in a directory with their plugins."""
    try:
        names = sorted(one.name for one in os.scandir(directory) if one.name.endswith((".dist-info", ".egg-info")))
    except (OSError, ValueError):  # a zip file, or missing
        return ()
    return tuple(
        (
            re.sub(r"[-_.]+", "-", name.rpartition(".")[0].partition("-")[0]).lower(),
            tuple(_of_distribution(os.path.join(directory, name))),  # noqa: PTH118  # runs for every package
        )
        for name in names
    )


def _of_distribution(metadata: str) -> Iterator[Plugin]:
    file = os.path.join(metadata, "entry_points.txt")  # noqa: PTH118
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            text = opened.read()
    except OSError:
        return
    if not _AGENTV_GROUP.search(text):
        return
    package, _, version = Path(metadata).stem.partition("-")  # NAME-VERSION, or only NAME in a source tree
    package, version = package.replace("_", "-"), version.partition("-")[0]
    place = os.path.abspath(file)  # noqa: PTH100
    kinds = {**GROUPS, EXTENSIONS: EXTENSIONS}
    group = ""
    for number, raw in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1]
        elif line and not line.startswith("#") and group in kinds:
            name, _, value = line.partition("=")
            yield Plugin(kinds[group], name.strip(), value.strip(), package, version, place, number)


def import_plugin(plugin: Plugin) -> object | Problem:
    """Return the object that a plugin's entry point names, or a Problem. Its output goes to stderr."""
    try:
        with output_to_stderr(), foreign_code("bad-plugin", plugin.title):
            return _imported(plugin)
    except ForeignError as error:
        return problem_with(plugin, error.__cause__ or error)


def problem_with(plugin: Plugin, error: BaseException) -> Problem:
    """Return the Problem for an exception of a plugin, with the place in its code and a hint."""
    file, line = _place_of(error) or (plugin.file, plugin.line)
    what = str(error) if isinstance(error, BadPluginError) else _describe_error(error)
    message = f"{plugin.title} cannot be loaded: {what} ({_shown(file)}:{line})"
    hint = f"upgrade {plugin.package}, or remove it: pip uninstall {plugin.package}"
    if isinstance(error, ImportError) and (error.name or "").startswith("agentv"):
        hint = f"{plugin.owner} does not fit agentv {__version__}: upgrade it: pip install --upgrade {plugin.package}"
    return Problem("bad-plugin", message, hint)


def _describe_error(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    text = (error.msg if isinstance(error, SyntaxError) else str(error)) or ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _imported(plugin: Plugin) -> object:
    found = _VALUE.fullmatch(plugin.value)
    if found is None:
        raise BadPluginError(
            f"an entry must read NAME = module:Class, found '{plugin.value}'", plugin.file, plugin.line
        )
    module = import_module(found["module"])
    value: Any = module
    for part in (found["attribute"] or "").split("."):
        if part and not hasattr(value, part):
            import difflib

            near = difflib.get_close_matches(part, dir(value), 1)
            suggestion = f"; did you mean '{near[0]}'?" if near else ""
            where = getattr(value, "__name__", type(value).__name__)
            raise BadPluginError(f"{where} has no '{part}'{suggestion}", getattr(module, "__file__", None), 1)
        value = getattr(value, part) if part else value
    return value


def _place_of(error: BaseException) -> tuple[str, int] | None:
    """Return the file and line of an error: the invalid line for a SyntaxError, or else where it was raised."""
    if isinstance(error, BadPluginError):
        return (error.file, error.line or 1) if error.file else None
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return error.filename, error.lineno
    ours = str(Path(__file__).parents[1]) + os.sep
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [one for one in frames if not one.filename.startswith(("<", ours))]
    theirs = [one for one in theirs if os.sep + "importlib" + os.sep not in one.filename]
    return (theirs[-1].filename, theirs[-1].lineno or 1) if theirs else None


def _shown(path: str) -> str:
    """Return a path relative to the working directory if it is below it, or else unchanged."""
    here = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118  # ends with a slash
    return path.removeprefix(here)


_plugin_at: dict[str, Plugin] = {}
"""File of an imported plugin → the plugin, to attribute exceptions to it."""


def plugin_at_fault(error: BaseException) -> tuple[Plugin, str] | None:
    """Return the plugin that raised an exception, with its description (`ValueError: no (acme.py:12, in refuses)`).

    Return None if the exception did not come from a plugin. This is for methods such as `refuses`, whose calls are too
    many to guard each of them.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        plugin = _plugin_at.get(frame.filename)
        if plugin is not None:
            return plugin, f"{_describe_error(error)} ({_shown(frame.filename)}:{frame.lineno}, in {frame.name})"
    return None


def code_of_plugin(plugin: Plugin) -> PluginCode:
    """Return the identity of an imported plugin. It contains a hash of the files, because edits keep the version."""
    digest = hashlib.sha256()
    for path, shown in note_files(plugin):
        digest.update(f"{shown}\0".encode("utf-8", "surrogateescape"))
        digest.update(hashlib.sha256(path.read_bytes() if path.is_file() else b"").digest())
    return PluginCode(plugin.title, plugin.owner, f"{plugin.owner} {digest.hexdigest()}")


def note_files(plugin: Plugin) -> list[tuple[Path, str]]:
    """Return the files of an imported plugin, and register them for `plugin_at_fault`."""
    files = _files_of(plugin.value.partition(":")[0].strip())
    for path, _ in files:
        _plugin_at.setdefault(str(path), plugin)
    return files


def _files_of(module: str) -> list[tuple[Path, str]]:
    """Return the files of a module's top-level package, or its single file, with their paths inside the package."""
    parts = module.split(".")
    names = (".".join(parts[: number + 1]) for number in range(len(parts)))
    found = (getattr(sys.modules.get(name), "__file__", None) for name in names)
    file = next((Path(one) for one in found if isinstance(one, str)), None)
    if file is None:
        return []  # a namespace package without code
    if file.stem != "__init__":
        return [(file, file.name)]
    inside = (Path(folder, name) for folder, _, names in os.walk(file.parent) for name in names)
    files = sorted(one for one in inside if one.parent.name != "__pycache__")[:MOST_FILES]
    return [(one, str(one.relative_to(file.parent))) for one in files]


_CLASSES = {
    COMMANDS: "click:Command",
    OPTIONS: "click:Option",
    DIALECTS: "agentv.authoring.dialects.recognition:Dialect",
}
"""Kind of plugin → the class that its objects must have."""


_OWN_TABLES = {CASE_KEYS, ENDPOINTS, PAGES, PORTS, SCHEMA_DEFS, SUITE_KEYS}
"""Tables for agentv's own extensions only, because agentv's code looks up specific names in them."""


def added(kind: str) -> dict[str, str]:
    """Return name → import path for everything of a kind: of agentv's own extensions, then of installed packages."""
    return registered(kind) | source_of(kind).places


def added_value(kind: str, name: str) -> Any:
    """Import the object of a name and return it, or None if the name is unknown.

    Raises:
        PluginError: the name is that of an installed package's plugin, which is broken.
    """
    if name in registered(kind):
        return loaded(kind, name)
    found = source_of(kind).find(name)
    if isinstance(found, Problem):
        raise PluginError(f"[{found.code}] {found.message}", found.hint)
    return found.value if found is not None else None


def usable(kind: str, names: Iterable[str]) -> list[Any]:
    """Import the objects of these names and return them, without those of broken plugins."""
    found = source_of(kind)
    return [added_value(kind, name) for name in names if not isinstance(found.find(name), Problem)]


def broken_extensions() -> list[str]:
    """Return the messages about broken extensions of installed packages."""
    found = source_of_extensions()
    return [one.message for name in sorted(found.places) if isinstance(one := found.find(name), Problem)]


def source_of_extensions() -> PluginSource:
    """Return the extensions of installed packages."""
    own = (one for one in installed_plugins() if one.kind == EXTENSIONS)
    return PluginSource(own, NameRules(extensions().keys()), _load_extension)


def plugins_of(kind: str) -> tuple[Plugin, ...]:
    """Return the installed plugins of a kind: entry points of its group, then names in the tables of extensions."""
    installed = installed_plugins()
    own = [one for one in installed if one.kind == kind]
    if any(one.kind == EXTENSIONS for one in installed):
        source = source_of_extensions()
        for extension in source.plugins:
            module = source.find(extension.name) if extension not in source.problems else None
            if isinstance(module, LoadedPlugin):
                own += _of_table(extension, module.value, kind)
    return tuple(own)


def source_of(kind: str) -> PluginSource:
    """Return the plugins of a kind that eval files do not name."""
    return PluginSource(plugins_of(kind), NameRules(reserved(kind), form=ANY_NAME), _value_of)


@cache
def _load_extension(plugin: Plugin) -> LoadedPlugin | Problem:
    """Return the module of an extension, or a Problem if it is invalid."""
    module = import_plugin(plugin)
    if isinstance(module, Problem):
        return module
    try:
        with foreign_code("bad-plugin", plugin.title):
            for why in _table_errors(module):
                raise BadPluginError(why, getattr(module, "__file__", None), 1)
            return _registered(plugin, module)
    except ForeignError as error:
        return problem_with(plugin, error.__cause__ or error)


def _table_errors(module: object) -> Iterator[str]:
    if not isinstance(module, ModuleType):
        yield f"an extension must be a module with tables, found {type(module).__name__}"
        return
    for name, table in vars(module).items():
        if not name.isupper() or name.startswith("_") or not (name in kinds() or isinstance(table, dict)):
            continue
        if name not in kinds():
            import difflib

            near = difflib.get_close_matches(name, kinds(), 1)
            yield f"no extension has a table {name}" + (f"; did you mean {near[0]}?" if near else "")
        elif name in _OWN_TABLES:
            yield f"the table {name} is for agentv's own extensions"
        elif not isinstance(table, dict) or not all(isinstance(one, str) for pair in table.items() for one in pair):
            yield f"{name} must map names to text such as 'package.module:attribute'"


def _of_table(extension: Plugin, module: Any, kind: str) -> Iterator[Plugin]:
    """Yield a plugin for each name in a table of an extension, with its line in the module."""
    file = str(getattr(module, "__file__", None) or extension.file)
    for name, place in getattr(module, kind, {}).items():
        shown = name.removeprefix(".") if kind == EXPORT_FORMATS else name
        yield Plugin(kind, shown, place, extension.package, extension.version, file, *_position_of(name, file))


def _position_of(name: str, file: str) -> tuple[int, int]:
    """Return the line and column of a name in a module, or the first ones if the name is computed."""
    for number, text in enumerate(linecache.getlines(file), 1):
        for quoted in (f'"{name}"', f"'{name}'"):
            if quoted in text:
                return number, text.index(quoted) + 2
    return 1, 1


def _value_of(plugin: Plugin) -> LoadedPlugin | Problem:
    if plugin.kind in (SIGNS, COMMAND_SECTIONS):
        return _registered(plugin, plugin.value)  # the value is the name of a dialect or section
    value = import_plugin(plugin)
    if isinstance(value, Problem):
        return value
    place = _CLASSES.get(plugin.kind)
    if place is not None and not isinstance(value, resolve_name(place)):
        why = f"{plugin.value} must be a {place.replace(':', '.')}, found {type(value).__name__}"
        return problem_with(plugin, BadPluginError(why, plugin.file, plugin.line))
    return _registered(plugin, value)


def _registered(plugin: Plugin, value: object) -> LoadedPlugin:
    note_files(plugin)
    return LoadedPlugin(
        value, PluginCode(plugin.title, plugin.owner, plugin.owner)
    )  # no digest: not part of a cache key
