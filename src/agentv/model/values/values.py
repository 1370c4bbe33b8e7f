"""Basics: plain data as JSON knows it, positions in authored files, and patterns that are compiled at first use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, AnyStr, ClassVar, TypeAlias, TypeVar, cast

from msgspec import Struct, field

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
else:

    class Json:
        """What JSON can say. Sequences are lists or tuples, never strings.

        A class at run time, so that declarations of options can be read: a recursive alias cannot be evaluated.
        """


T = TypeVar("T")


JsonObject: TypeAlias = Mapping[str, Json]


class _NoKeys(dict[str, "Json"]):
    """Hashable, which Python 3.11 asks of the default of a dataclass's field; a dict, so that it can be encoded."""

    __slots__ = ()

    __hash__ = object.__hash__  # type: ignore[assignment]  # dict sets it to None


EMPTY: JsonObject = _NoKeys()
"""The object without keys, shared; never written to."""


class PartlyShown(Struct, frozen=True):
    """A struct whose `repr` lacks the fields that are `hidden`: they may hold secrets."""

    hidden: ClassVar[frozenset[str]]

    def __repr__(self) -> str:
        """The other fields."""
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name not in self.hidden)
        return f"{type(self).__name__}({', '.join(shown)})"


def plain_json(value: object) -> Json:
    """What JSON has no form for: mappings of other kinds as objects, anything else as its text."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def objects_in(found: object) -> list[Mapping[str, Any]]:
    """The objects of a list; none of what is not a list."""
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []


def always(absent: T) -> T:
    """A key that is always written; `absent` is its value where a file lacks it.

    For structs with `omit_defaults`, which leave out the keys that have their default.
    """
    return field(default_factory=lambda: absent)


class Span(Struct, frozen=True, order=True, array_like=True, gc=False):
    """A stretch of one file. Lines and columns count from 1; the end column is exclusive.

    One is made for every assertion of every case, so the garbage collector does not track it.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def line_of_file(self) -> tuple[str, int]:
        """The line where it begins."""
        return self.file, self.line

    def within(self, other: Span) -> bool:
        """Whether another one covers it."""
        begins = self.file == other.file and (other.line, other.column) <= (self.line, self.column)
        return begins and (self.end_line, self.end_column) <= (other.end_line, other.end_column)

    def __str__(self) -> str:
        """`file:line:column`, as editors and terminals link it."""
        return f"{self.file}:{self.line}:{self.column}"


_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split", "pattern", "flags", "groups")


class _Lazy:
    def __init__(self, *said: Any) -> None:
        self._said = said

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(*self._said)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))  # so that nobody comes by here again
        return getattr(compiled, name)


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, once it is used."""
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
