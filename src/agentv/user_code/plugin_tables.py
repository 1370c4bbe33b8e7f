"""What extensions add, those of installed packages too: entry points that name modules with the same tables."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from functools import cache
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

from agentv.errors import PluginError
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
    LoadedPlugin,
    NameRules,
    Plugin,
    PluginCode,
    PluginSource,
    Problem,
)
from agentv.user_code.functions.guard import ForeignError, foreign_code
from agentv.user_code.plugins import BadPluginError, import_plugin, installed_plugins, note_files, problem_with

_CLASSES = {
    COMMANDS: "click:Command",
    OPTIONS: "click:Option",
    DIALECTS: "agentv.authoring.dialects.recognition:Dialect",
}
"""Kind → the class of what is registered, where there is one."""


_OURS = {CASE_KEYS, ENDPOINTS, PAGES, PORTS, SCHEMA_DEFS, SUITE_KEYS}
"""Tables whose names mean something only where the code of agentv itself asks for them."""


def added(kind: str) -> dict[str, str]:
    """Everything of a kind that extensions add, then what installed packages add: name → place."""
    return registered(kind) | source_of(kind).places


def added_value(kind: str, name: str) -> Any:
    """What is added by a name, imported; None: nothing is.

    Raises:
        PluginError: it is a package's that is broken.
    """
    if name in registered(kind):
        return loaded(kind, name)
    found = source_of(kind).find(name)
    if isinstance(found, Problem):
        raise PluginError(f"[{found.code}] {found.message}", found.hint)
    return found.value if found is not None else None


def usable(kind: str, names: Iterable[str]) -> list[Any]:
    """What is added by these names, imported, without what is broken: for who asks all of them."""
    found = source_of(kind)
    return [added_value(kind, name) for name in names if not isinstance(found.find(name), Problem)]


def broken_extensions() -> list[str]:
    """What is wrong with extensions of installed packages, of which nothing can be used."""
    found = source_of_extensions()
    return [one.message for name in found.names if isinstance(one := found.find(name), Problem)]


def source_of_extensions() -> PluginSource:
    """The extensions that installed packages have."""
    own = (one for one in installed_plugins() if one.kind == EXTENSIONS)
    return PluginSource(own, NameRules(extensions().keys()), _with_tables)


def plugins_of(kind: str) -> tuple[Plugin, ...]:
    """The installed plugins of a kind: entry points of its group, then names in the tables of extensions."""
    installed = installed_plugins()
    own = [one for one in installed if one.kind == kind]
    if any(one.kind == EXTENSIONS for one in installed):
        source = source_of_extensions()
        found = ((one, source.find(one.name)) for one in source.plugins if one not in source.problems)
        own += (one for by, here in found if isinstance(here, LoadedPlugin) for one in _of_table(by, here.value, kind))
    return tuple(own)


def source_of(kind: str) -> PluginSource:
    """What extensions of installed packages add of a kind that eval files do not name."""
    return PluginSource(plugins_of(kind), NameRules(reserved(kind), form=ANY_NAME), _loaded)


@cache
def _with_tables(plugin: Plugin) -> LoadedPlugin | Problem:
    """The module of an extension, or why it cannot be used."""
    module = import_plugin(plugin)
    if isinstance(module, Problem):
        return module
    try:
        with foreign_code("bad-plugin", plugin.title):
            for why in _faults(module):
                raise BadPluginError(why, getattr(module, "__file__", None), 1)
            return _noted(plugin, module)
    except ForeignError as error:
        return problem_with(plugin, error.__cause__ or error)


def _faults(module: object) -> Iterator[str]:
    if not isinstance(module, ModuleType):
        yield f"an extension must be a module with tables, found {type(module).__name__}"
        return
    for name, table in vars(module).items():
        if not name.isupper() or name.startswith("_") or not (name in kinds() or isinstance(table, dict)):
            continue
        if name not in kinds():
            import difflib  # only for the hint of a mistake

            near = difflib.get_close_matches(name, kinds(), 1)
            yield f"no extension has a table {name}" + (f"; did you mean {near[0]}?" if near else "")
        elif name in _OURS:
            yield f"the table {name} is for agentv's own extensions"
        elif not isinstance(table, dict) or not all(isinstance(one, str) for pair in table.items() for one in pair):
            yield f"{name} must map names to text such as 'package.module:attribute'"


def _of_table(extension: Plugin, module: Any, kind: str) -> Iterator[Plugin]:
    """The names of one table, each at its line of the module."""
    file = str(getattr(module, "__file__", None) or extension.file)
    for name, place in getattr(module, kind, {}).items():
        shown = name.removeprefix(".") if kind == EXPORT_FORMATS else name
        yield Plugin(kind, shown, place, extension.package, extension.version, file, *_written(name, file))


def _written(name: str, file: str) -> tuple[int, int]:
    """The line and column of a name in a module; the first ones, where it is put together."""
    for number, text in enumerate(linecache.getlines(file), 1):
        for quoted in (f'"{name}"', f"'{name}'"):
            if quoted in text:
                return number, text.index(quoted) + 2
    return 1, 1


def _loaded(plugin: Plugin) -> LoadedPlugin | Problem:
    if plugin.kind in (SIGNS, COMMAND_SECTIONS):
        return _noted(plugin, plugin.value)  # a name, of a dialect or a section
    value = import_plugin(plugin)
    if isinstance(value, Problem):
        return value
    place = _CLASSES.get(plugin.kind)
    if place is not None and not isinstance(value, resolve_name(place)):
        why = f"{plugin.value} must be a {place.replace(':', '.')}, found {type(value).__name__}"
        return problem_with(plugin, BadPluginError(why, plugin.file, plugin.line))
    return _noted(plugin, value)


def _noted(plugin: Plugin, value: object) -> LoadedPlugin:
    note_files(plugin)
    return LoadedPlugin(value, PluginCode(plugin.title, plugin.owner, plugin.owner))  # a key of no answer or grade
