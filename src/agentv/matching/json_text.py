"""JSON in what a model wrote: read strictly, found anywhere, and never slower than the text is long (RFC 8259)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from json import JSONDecodeError, JSONDecoder

from msgspec import Struct

from agentv.model.values.values import Json, lazy_pattern

STEPS = 500_000
"""What a search may do: values found, brackets that begin none, and every 100 characters read behind one of these."""


class UnsearchableError(Exception):
    """A text has more brackets and values than the limit, so its content is unknown."""


class NotJson(Struct, frozen=True):
    """Why a text is no JSON."""

    reason: str


def _refused(constant: str) -> Json:
    raise ValueError(f"{constant} is not valid JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


_DECODER = JSONDecoder(parse_constant=_refused, parse_float=_finite)
_OPENING = lazy_pattern(r"""\[(?=[ \t\n\r]*+[]\[{"0-9tfn-])|\{(?=[ \t\n\r]*+["}])""")
"""A bracket that may begin JSON, by what follows it."""


def parse(text: str) -> Json | NotJson:
    """The value of a text that is JSON as a whole.

    NaN, Infinity, numbers that do not fit and nesting that no reader follows are refused, as RFC 8259 (section 9)
    lets a reader do.
    """
    text = text.removeprefix("\ufeff")  # a byte order mark is no part of the text
    try:
        value: Json = _DECODER.decode(text)
    except JSONDecodeError as error:
        return NotJson(f"not JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}")
    except RecursionError:
        return NotJson("JSON nested too deeply to read")
    except ValueError as error:
        return NotJson(str(error) if "digits" not in str(error) else "a number is too large")
    return value


class _WithoutLines(str):
    """A text whose errors have no line and column: to count lines takes as long as the text is."""

    __slots__ = ()

    count = rfind = lambda *_: 0


def containers(text: str) -> Iterator[Json]:
    """Every outermost JSON object and array in a text, in order: in prose, in a fenced block, or alone.

    Where a bracket begins no value, the search goes on behind it.

    Raises:
        UnsearchableError: before the first value or behind one; what was yielded till then is right.
    """
    refused: list[str] = []

    def number(digits: str) -> float:
        found = float(digits)
        if math.isinf(found):
            refused.append(digits)
        return found

    decode = JSONDecoder(parse_constant=refused.append, parse_float=number).raw_decode
    lineless = _WithoutLines(text)
    at = steps = 0
    while (opening := _OPENING.search(text, at)) is not None:
        start = opening.start()
        at = start + 1
        refused.clear()
        value: Json = None
        try:
            value, end = decode(lineless, start)
        except RecursionError:  # nothing in it is outermost
            at, end = _behind_nest(text, start)
        except ValueError as error:  # without a place: a number with more digits than Python reads
            end = getattr(error, "pos", start)
        found = isinstance(value, list | dict) and not refused
        steps += 1 if found else 1 + (end - start) // 100
        if steps > STEPS:
            raise UnsearchableError(f"more than {STEPS:,} brackets and values")
        if found:
            at = end
            yield value


_BRACKETS = lazy_pattern(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)


def _behind_nest(text: str, start: int) -> tuple[int, int]:
    """Where the bracket at `start` is closed, else the first bracket that is; and how far it was read.

    Raises:
        UnsearchableError: too many of them are open.
    """
    first, opened = len(text), list[int]()
    for token in _BRACKETS.finditer(text, start):
        if token[0] in "[{":
            opened.append(token.start())
        elif token[0] in "]}":
            first = min(first, opened.pop())
        if not opened:
            return token.end(), token.end()
        if len(opened) > STEPS:
            raise UnsearchableError(f"more than {STEPS:,} brackets and values")
    return first, len(text)


def json_in(text: str, like: Json = None) -> Json | NotJson:
    """The JSON that an answer gives: all of it, or the first object or array in it.

    Args:
        text: the answer.
        like: an object or an array where only one of that kind will do; None: either.

    Raises:
        UnsearchableError: as `parse` and `containers`.
    """
    whole = parse(text)
    if not isinstance(whole, NotJson):
        return whole
    for value in containers(text):
        if like is None or isinstance(value, Mapping) is isinstance(like, Mapping):
            return value
    return whole
