"""Fast encoding of values as JSON, which replaces what JSON cannot represent so that no row is lost; decoders."""

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
"""Maximum levels of nesting; deeper data is replaced by `CUT`."""

CUT = "[nested too deeply]"


def _replacement(value: Any) -> Any:
    """Return a substitute for a value that is not JSON. Foreign code, such as `__str__`, is not called."""
    return dict(value) if isinstance(value, Mapping) else f"<{type(value).__name__}>"


_encoder = msgspec.json.Encoder(enc_hook=_replacement)


def to_json(row: msgspec.Struct) -> bytes:
    """Return a row as one line of JSON in UTF-8, without a line end.

    Lone surrogates become U+FFFD, NaN and infinities null, and values that are not plain data the name of their type.
    """
    try:
        return without_breaks(_encoder.encode(row))
    except (TypeError, ValueError, OverflowError, RecursionError):  # UnicodeEncodeError is a ValueError
        plain = json.dumps(_plain(row, 0), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return without_breaks(plain.encode())


def to_document(content: Mapping[str, Json]) -> bytes:
    """Return an object as indented JSON with a line end, for people and programs."""
    return json.dumps(_plain(content, 0), ensure_ascii=False, allow_nan=False, indent=2).encode() + b"\n"


def _plain(value: Any, depth: int) -> Json:
    """Return a copy of a value that `json.dumps` accepts."""
    if isinstance(value, str):
        # through UTF-16, a surrogate pair becomes its character, and a lone surrogate becomes U+FFFD
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
    """Return the fields of a struct or a dataclass by their encoded names, or a substitute for other values."""
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
    """Return the type after preparing its decoder, so that several threads may decode it."""
    decoder_of(kind)
    return kind


def decoder_of(kind: type[Decoded]) -> msgspec.json.Decoder[Decoded]:
    """Return the decoder of a type, created on first use because most commands read neither rows nor a journal."""
    hashable: Any = kind
    decoder: msgspec.json.Decoder[Decoded] = _prepared(hashable)
    return decoder


@cache
def _prepared(kind: Any) -> msgspec.json.Decoder[Any]:
    with _PREPARING:
        return msgspec.json.Decoder(kind)
