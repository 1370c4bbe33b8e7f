"""Basic types: JSON data, positions in files, and regular expressions that are compiled on first use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, AnyStr, ClassVar, TypeAlias, TypeVar, cast

from msgspec import Struct, field

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
else:

    class Json:
        """Any JSON value. Sequences are lists or tuples, never strings.

        A class at run time, because annotations of options are evaluated and a recursive alias cannot be.
        """


T = TypeVar("T")


JsonObject: TypeAlias = Mapping[str, Json]


class _NoKeys(dict[str, "Json"]):
    """An empty dict that is hashable, because Python 3.11 requires that of default values of dataclass fields."""

    __slots__ = ()

    __hash__ = object.__hash__  # type: ignore[assignment]  # dict sets it to None


EMPTY: JsonObject = _NoKeys()
"""The shared empty object; never modified."""


class PartlyShown(Struct, frozen=True):
    """A struct whose `repr` omits the fields named in `hidden`, because they may hold secrets."""

    hidden: ClassVar[frozenset[str]]

    def __repr__(self) -> str:
        """The representation without hidden fields."""
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name not in self.hidden)
        return f"{type(self).__name__}({', '.join(shown)})"


def plain_json(value: object) -> Json:
    """Convert a value that is not JSON: a mapping to a dict, anything else to its `str`."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def objects_in(found: object) -> list[Mapping[str, Any]]:
    """Return the objects in a list; an empty list if `found` is not a list."""
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []


def always(absent: T) -> T:
    """Return a field that is always written; `absent` is its value if a file lacks it.

    For structs with `omit_defaults`, which omit keys with default values but not with the result of a factory.
    """
    return field(default_factory=lambda: absent)


class Span(Struct, frozen=True, order=True, array_like=True, gc=False):
    """A range of text in a file. Lines and columns count from 1; the end column is exclusive.

    Not tracked by the garbage collector, because every assertion of every case has one.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def start_of(cls, file: str) -> Span:
        """The first character of a file: the position of diagnostics about the whole file."""
        return cls(file, 1, 1, 1, 2)

    @property
    def line_of_file(self) -> tuple[str, int]:
        """The file and the line where it begins."""
        return self.file, self.line

    def within(self, other: Span) -> bool:
        """Whether another span contains this one."""
        begins = self.file == other.file and (other.line, other.column) <= (self.line, self.column)
        return begins and (self.end_line, self.end_column) <= (other.end_line, other.end_column)

    def __str__(self) -> str:
        """The start as `file:line:column`, which editors and terminals turn into a link."""
        return f"{self.file}:{self.line}:{self.column}"


_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split", "pattern", "flags", "groups")


class _Lazy:
    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(*self._arguments)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))  # later lookups bypass `__getattr__`
        return getattr(compiled, name)


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled on first use."""
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
