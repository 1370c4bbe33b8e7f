"""Plain data, as JSON knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from msgspec import Struct, field

T = TypeVar("T")

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
else:

    class Json:
        """What JSON can say. Sequences are lists or tuples, never strings.

        A class at run time, so that declarations of options can be read: a recursive alias cannot be evaluated.
        """


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


def objects_in(found: object) -> list[Mapping[str, Any]]:
    """The objects of a list; none of what is not a list."""
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []


def always(absent: T) -> T:
    """A key that is always written; `absent` is its value in files of older versions, which lack it.

    For structs with `omit_defaults`, which leave out the keys that have their default.
    """
    return field(default_factory=lambda: absent)
