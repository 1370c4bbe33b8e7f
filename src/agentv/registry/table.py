"""A registry: names to declarations, loaded when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to declarations. What a name stands for is imported when it is first looked up.

    Args:
        what: what is registered, in the words of a message: "assertion type", "provider".
        table: name → `package.module:Class`.
        make: turns the name and the loaded class into what `find` returns.
        not_yet: names that are known and not built yet.
        plugins: entry point group that is searched for names that the table lacks.
    """

    def __init__(
        self,
        what: str,
        table: Mapping[str, str],
        make: Callable[[str, type], T],
        *,
        not_yet: frozenset[str] = frozenset(),
        plugins: str | None = None,
    ) -> None:
        self.what = what
        self.not_yet = not_yet
        self._table = table
        self._make = make
        self._plugins = plugins
        self._found: dict[str, T | None] = {}
        self._points: EntryPoints | None = None

    def __iter__(self) -> Iterator[str]:
        """The built-in names, in the order of the table."""
        return iter(self._table)

    def find(self, name: str) -> T | None:
        """What the name stands for, or None.

        Raises:
            TypeError: a plugin registers something that is not of the right kind; the text quotes it.
        """
        if name not in self._found:
            self._found[name] = self._load(name)
        return self._found[name]

    def _load(self, name: str) -> T | None:
        place = self._table.get(name)
        if place is not None:
            module, _, attribute = place.partition(":")
            return self._make(name, getattr(import_module(module), attribute))
        return self._plugin(self._plugins, name) if self._plugins and name not in self.not_yet else None

    def _plugin(self, group: str, name: str) -> T | None:
        if self._points is None:
            from importlib.metadata import entry_points  # 50 ms, and only a name that is not built in needs it

            self._points = entry_points(group=group)
        for point in self._points.select(name=name):
            loaded = point.load()
            if not isinstance(loaded, type):
                raise TypeError(
                    f"plugin {point.value!r} must refer to a class for {self.what} {name!r}, got {loaded!r}"
                )
            return self._make(name, loaded)
        return None
