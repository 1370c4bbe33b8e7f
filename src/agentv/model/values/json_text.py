"""Foreign JSON as plain values that every later step can handle: limited in depth, without lone surrogates.

Programs write into their streams whatever they were given, so these may contain a lone surrogate, a number of 400
digits, or 10,000 nested lists. The first two are replaced instead of rejecting the stream.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec

from agentv.model.values.values import Json

DEEPEST = 100
"""Maximum levels of nesting."""

CUT = "[nested too deeply]"

TOO_DEEP = f"it is nested more than {DEEPEST} levels deep"

_decode = msgspec.json.Decoder().decode
_LARGEST = 2**63


def parse(data: bytes) -> Any:
    """Parse JSON text in UTF-8.

    Raises:
        ValueError: it is not JSON, or is nested too deeply; the message says why, without a position.
    """
    try:
        value = _decode(data)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ValueError as error:
        value = _parse_leniently(data, error)
    return plain(value)


def _parse_leniently(data: bytes, error: ValueError) -> Any:
    """Parse with Python's own parser, which also accepts lone surrogates and numbers too large for a float."""
    if b"\\u" not in data and "out of range" not in str(error):
        raise ValueError(_reason(error)) from None
    try:
        return json.loads(
            data, parse_constant=_refuse, parse_int=lambda digits: int(digits) if len(digits) < 19 else float(digits)
        )
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ValueError:
        raise ValueError(_reason(error)) from None


def _reason(error: ValueError) -> str:
    return str(error).replace("JSON is malformed: ", "").partition(" (byte")[0]


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def plain(value: Any, *, cut: bool = False) -> Any:
    """Return a copy of a value made only of JSON types.

    Lone surrogates become U+FFFD, infinities and NaN null, integers beyond 64 bits floats, and values of other types
    the name of their type.

    Args:
        value: any value.
        cut: replace values that are nested too deeply by `CUT`, instead of raising.

    Raises:
        ValueError: it is nested too deeply.
    """
    return _plain(value, 0, cut)


def _plain(value: Any, depth: int, cut: bool) -> Any:
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, bool | int | float):
        return value if value is None or isinstance(value, bool) else _number(value)
    if depth == DEEPEST and not cut:
        raise ValueError(TOO_DEEP)
    if isinstance(value, Mapping):
        return CUT if depth == DEEPEST else {text(str(key)): _plain(one, depth + 1, cut) for key, one in value.items()}
    if isinstance(value, Sequence):
        return CUT if depth == DEEPEST else [_plain(one, depth + 1, cut) for one in value]
    return f"<{type(value).__name__}>"


def _number(value: float) -> float | None:
    if isinstance(value, int) and -_LARGEST <= value < _LARGEST:
        return value
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def text(value: str) -> str:
    """Return the text with each lone surrogate replaced by U+FFFD."""
    if value.isascii():
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def compact(value: Json) -> str:
    """Return the value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_BREAKS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
"""UTF-8 → JSON escape of the characters that end a line for Python's `splitlines` or JavaScript, but not in JSON."""


def without_breaks(line: bytes) -> bytes:
    """Return a line of JSON in UTF-8 with every character escaped that a reader may take for a line break."""
    for character, escape in () if line.isascii() else _BREAKS:
        if character in line:
            line = line.replace(character, escape)
    return line
