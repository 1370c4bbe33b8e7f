"""Find JSON anywhere in a model's text and read it strictly (RFC 8259), in time linear in the text's length."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from json import JSONDecodeError, JSONDecoder

from msgspec import Struct

from agentv.model.values.values import Json, lazy_pattern

STEPS = 500_000
"""Maximum steps of a search: each value, each bracket that begins none, and every 100 characters read after one."""


class UnsearchableError(Exception):
    """A text has too many brackets and values to be searched."""


class NotJson(Struct, frozen=True):
    """Why a text is not JSON."""

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
"""A bracket that, judging by what follows it, may begin JSON."""


def parse(text: str) -> Json | NotJson:
    """Return the value of a text that is JSON as a whole, or why it is not.

    NaN, Infinity, numbers that are too large and nesting that is too deep are refused, as RFC 8259 (section 9) allows.
    """
    text = text.removeprefix("\ufeff")  # a byte order mark is not part of the text
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
    """A text for which decoder errors do not compute line and column, since counting lines takes linear time."""

    __slots__ = ()

    count = rfind = lambda *_: 0


def containers(text: str) -> Iterator[Json]:
    """Yield every outermost JSON object and array in a text, in order: in prose, in a fenced block, or alone.

    If a bracket begins no value, the search continues after it.

    Raises:
        UnsearchableError: the text has too many brackets and values; those yielded before are valid.
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
        except RecursionError:  # skip it as a whole, since nothing inside is outermost
            at, end = _skip_nest(text, start)
        except ValueError as error:  # without `pos`: a number with more digits than Python reads
            end = getattr(error, "pos", start)
        found = isinstance(value, list | dict) and not refused
        steps += 1 if found else 1 + (end - start) // 100
        if steps > STEPS:
            raise UnsearchableError(f"more than {STEPS:,} brackets and values")
        if found:
            at = end
            yield value


_BRACKETS = lazy_pattern(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)


def _skip_nest(text: str, start: int) -> tuple[int, int]:
    """Return where to continue the search after a nest at `start`, and how far the text was read.

    The search continues after the bracket at `start`, or if it is never closed, at the first bracket that is.

    Raises:
        UnsearchableError: too many brackets are open.
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
    """Return the JSON value of an answer: of the whole text, or else the first object or array in it.

    Args:
        text: the answer.
        like: an object or array, to accept only values of that kind; None: either.

    Raises:
        UnsearchableError: the text has too many brackets and values.
    """
    whole = parse(text)
    if not isinstance(whole, NotJson):
        return whole
    for value in containers(text):
        if like is None or isinstance(value, Mapping) is isinstance(like, Mapping):
            return value
    return whole
