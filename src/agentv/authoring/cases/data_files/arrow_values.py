"""Values of Arrow columns as plain values: what has no form in JSON is refused by the type of its column."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from agentv.authoring.cases.data_files.rows import WrongValue
from agentv.authoring.source.nodes import WrittenFloat

if TYPE_CHECKING:
    import pyarrow as pa

Convert = Callable[[Any], Any]
"""A value that is not null → what stands for it."""


class UnsupportedTypeError(Exception):
    """A column has a type that no value of a case can have."""

    def __init__(self, found: str, hint: str) -> None:
        super().__init__(found)
        self.hint = hint


class NotANumberError(Exception):
    """A number is NaN or infinite."""


def conversion(kind: pa.DataType) -> Convert | None:
    """What makes plain values of a type; None: its Python values are plain already.

    Raises:
        UnsupportedTypeError: they have no form in JSON.
    """
    import pyarrow.types as t

    if t.is_dictionary(kind):
        return conversion(kind.value_type)
    if _is_plain(kind):
        return None
    known: tuple[tuple[Callable[[pa.DataType], bool], Convert], ...] = (
        (t.is_float64, _finite),
        (t.is_floating, _short_float),
        (t.is_decimal, _decimal),
        (t.is_date, _iso),
        (t.is_time, _iso),
        (t.is_timestamp, _iso),
    )
    found = next((convert for holds, convert in known if holds(kind)), None) or _nested(kind)
    if found is None:
        raise UnsupportedTypeError(str(kind), _hint(kind))
    return found


def converted(value: Any, convert: Convert) -> Any:
    """A value, or what is wrong with it."""
    if value is None:
        return None
    try:
        return convert(value)
    except NotANumberError as error:
        return WrongValue(f"{error} is not a value of JSON", "write null, or leave the cell empty")
    except (ValueError, OverflowError) as error:
        return WrongValue(str(error))


def _is_plain(kind: pa.DataType) -> bool:
    import pyarrow.types as t

    texts = t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind)
    return bool(texts or t.is_integer(kind) or t.is_boolean(kind) or t.is_null(kind))


def _nested(kind: pa.DataType) -> Convert | None:
    import pyarrow.types as t

    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return _list_of(conversion(kind.value_type))
    if t.is_struct(kind):
        return _struct_of({field.name: conversion(field.type) for field in kind})
    if t.is_map(kind) and (t.is_string(kind.key_type) or t.is_large_string(kind.key_type)):
        return _map_of(conversion(kind.item_type))
    return None


def _hint(kind: pa.DataType) -> str:
    import pyarrow.types as t

    if t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind):
        return "drop the column, or store the bytes in files and their paths in the column"
    return "drop the column, or convert it to text or numbers"


def _list_of(convert: Convert | None) -> Convert:
    if convert is None:
        return list
    return lambda items: [None if item is None else convert(item) for item in items]


def _struct_of(fields: dict[str, Convert | None]) -> Convert:
    def made(value: dict[str, Any]) -> dict[str, Any]:
        return {name: _one(value[name], convert) for name, convert in fields.items()}

    return made


def _map_of(convert: Convert | None) -> Convert:
    return lambda pairs: {key: _one(value, convert) for key, value in pairs}


def _one(value: Any, convert: Convert | None) -> Any:
    return value if value is None or convert is None else convert(value)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise NotANumberError("NaN" if math.isnan(value) else "an infinite number")
    return value


def _short_float(value: float) -> float:
    """A number of 32 bits with the digits that it was written with: 0.1, not 0.10000000149011612."""
    import numpy as np

    return float(str(np.float32(_finite(value))))


def _decimal(value: Decimal) -> float:
    """The number, with its digits for what compares it as text."""
    number = WrittenFloat(f"{value:f}")
    if Decimal(repr(float(number))) != value:
        raise ValueError(f"{value:f} has more digits than a number keeps; store the column as text")
    return number


def _iso(value: Any) -> str:
    text: str = value.isoformat()
    return text
