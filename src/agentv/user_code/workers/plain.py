"""Values that users' functions return, as plain data that a message can carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from pathlib import PurePath
from typing import Any

import msgspec


class UnsendableError(TypeError):
    """A value has no plain form; the text is the name of its type."""


def plain(value: object) -> Any:
    """The value as mappings, lists, text, bytes and numbers.

    Dataclasses, attrs' classes, enums, decimals, dates and UUIDs are msgspec's part; pydantic's models, NumPy's scalars
    and arrays, paths, and other mappings and sequences are ours.

    Raises:
        UnsendableError: it, or something in it, has no such form.
        RecursionError: it is nested too deeply, or contains itself.
    """
    return msgspec.to_builtins(value, builtin_types=(bytes, bytearray, Decimal), enc_hook=_plain)


_DERIVED: Mapping[type, Callable[[Any], Any]] = {str: str.__str__, int: int.__int__, float: float.__float__}
"""What makes a plain value of one whose class is derived from these, such as markupsafe's Markup."""


def _plain(value: object) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    for base, plain_of in _DERIVED.items():
        if isinstance(value, base):
            return plain_of(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, AbstractSet) or (isinstance(value, Sequence) and not isinstance(value, str | bytes)):
        return list(value)
    for name in ("model_dump", "as_json"):
        dump = getattr(value, name, None)
        if callable(dump) and not isinstance(value, type):
            return dump()
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    raise UnsendableError(type(value).__name__)
