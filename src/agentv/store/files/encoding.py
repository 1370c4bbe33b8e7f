"""Values to JSON, fast: what JSON cannot say is written as something it can, so no row is lost; types to decode."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from math import isfinite
from threading import Lock
from typing import Any, TypeVar

import msgspec

from agentv.model.values.json_text import without_breaks
from agentv.model.values.values import Json

DEEPEST = 200
"""Levels of nesting beyond which foreign data is cut."""

CUT = "[nested too deeply]"


def _replacement(value: Any) -> Any:
    """What is written for a value that JSON has no word for. Foreign code, such as its `__str__`, does not run."""
    return dict(value) if isinstance(value, Mapping) else f"<{type(value).__name__}>"


_encoder = msgspec.json.Encoder(enc_hook=_replacement)


def to_json(row: msgspec.Struct) -> bytes:
    """The row as one line of JSON, UTF-8, without the line's end.

    Lone surrogates become U+FFFD; NaN and infinities null; a value that is not plain data its type's name.
    """
    try:
        return without_breaks(_encoder.encode(row))
    except (TypeError, ValueError, OverflowError, RecursionError):  # UnicodeEncodeError is a ValueError
        plain = json.dumps(_plain(row, 0), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return without_breaks(plain.encode())


def to_document(content: Mapping[str, Json]) -> bytes:
    """The object as a file for people and programs: indented, with an end of line."""
    return json.dumps(_plain(content, 0), ensure_ascii=False, allow_nan=False, indent=2).encode() + b"\n"


def _plain(value: Any, depth: int) -> Json:
    """The value rebuilt of what `json.dumps` takes."""
    if isinstance(value, str):
        # by way of UTF-16 a pair of surrogates becomes the character that it stands for, a lone one U+FFFD
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if value is None or isinstance(value, bool | int | float):
        return None if isinstance(value, float) and not isfinite(value) else value
    if depth == DEEPEST:
        return CUT
    if isinstance(value, Mapping):
        return {str(_plain(key, depth + 1)): _plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [_plain(inner, depth + 1) for inner in value]
    return _plain(_parts(value), depth + 1)


def _parts(value: Any) -> Any:
    """A struct of ours or a dataclass of others, field by field under its written name."""
    if isinstance(value, msgspec.Struct):
        return {
            field.encode_name: part
            for field in msgspec.structs.fields(value)
            if (part := getattr(value, field.name)) is not msgspec.UNSET
            and not (value.__struct_config__.omit_defaults and part is field.default)
        }
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        from dataclasses import fields

        return {field.name: getattr(value, field.name) for field in fields(value)}
    return _replacement(value)


Decoded = TypeVar("Decoded")

_PREPARING = Lock()


def decodable(kind: type[Decoded]) -> type[Decoded]:
    """Return the type, which any number of threads may now decode JSON into."""
    decoder_of(kind)
    return kind


def decoder_of(kind: type[Decoded]) -> msgspec.json.Decoder[Decoded]:
    """Return the decoder of a type, which is made when it is first used: most commands read no rows and no journal."""
    hashable: Any = kind
    decoder: msgspec.json.Decoder[Decoded] = _prepared(hashable)
    return decoder


@cache
def _prepared(kind: Any) -> msgspec.json.Decoder[Any]:
    with _PREPARING:
        return msgspec.json.Decoder(kind)
