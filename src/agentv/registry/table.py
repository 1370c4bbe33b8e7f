"""A registry from names to declarations, loaded on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pkgutil import resolve_name
from typing import Generic, TypeVar

from agentv.registry.extensions import HOW_TO_GET, lacking
from agentv.registry.plugins import NO_PLUGINS, LoadedPlugin, Plugin, PluginSource, Problem

T = TypeVar("T")


class Registry(Generic[T]):
    """Registry from names to declarations. The object of a name is imported when it is first looked up.

    Args:
        what: kind of object for messages: "assertion type", "provider".
        table: name → `package.module:Class`.
        make: converts the name and the loaded class, and the code of a plugin, into the value that `find` returns.
        kind: of what extensions add to the table, so that it is known which names lack their extension.
        not_yet: names that are recognized but not supported yet.
        plugins: searched for names that the table lacks.
    """

    def __init__(
        self,
        what: str,
        table: Mapping[str, str],
        make: Callable[..., T],
        *,
        kind: str = "",
        not_yet: frozenset[str] = frozenset(),
        plugins: PluginSource = NO_PLUGINS,
    ) -> None:
        self.what = what
        self._kind = kind
        self.not_yet = not_yet
        self._table = table
        self._make = make
        self._plugins = plugins
        self._found: dict[str, T | None] = {}

    def __iter__(self) -> Iterator[str]:
        """The built-in names, in the order of the table."""
        return iter(self._table)

    @property
    def names(self) -> Iterator[str]:
        """Every name that may be used: the built-in ones, then those of plugins."""
        yield from self._table
        yield from self._plugins.names

    def plugin(self, name: str) -> Plugin | None:
        """The plugin that would be used for a name, were nothing else in its way. Not loaded."""
        return next((one for one in self._plugins.plugins if one.name == name and name not in self._table), None)

    def find(self, name: str) -> T | None:
        """Look a name up; None if it is unknown, or if its plugin is broken (`problem`)."""
        if name not in self._found:
            self._found[name] = self._load(name)
        return self._found[name]

    def problem(self, name: str) -> Problem | None:
        """Why this name, or a plugin of it, cannot be used."""
        if name in self._table or name in self.not_yet:
            return None
        if needs := lacking(self._kind, name):
            return Problem("missing-extra", f"the {self.what} '{name}' {needs}", HOW_TO_GET)
        found = self._plugins.find(name)
        return found if isinstance(found, Problem) else None

    def _load(self, name: str) -> T | None:
        place = self._table.get(name)
        if place is not None:
            return self._make(name, resolve_name(place))
        found = self._plugins.find(name) if name not in self.not_yet else None
        return self._make(name, found.value, found.code) if isinstance(found, LoadedPlugin) else None
