"""JSON in what a model wrote: read strictly, found anywhere, and never slower than the text is long (RFC 8259)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder

from agentv.model.values import Json

Span = tuple[int, int]

DEEPEST = 1000
"""Objects and arrays inside each other that a search follows; Python's own reader stops about there."""


@dataclass(frozen=True, slots=True)
class NotJson:
    """Why a text is no JSON."""

    reason: str


def _refused(constant: str) -> Json:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


_DECODER = JSONDecoder(parse_constant=_refused, parse_float=_finite)
_OPENING = re.compile(r"[\[{]")


def parse(text: str) -> Json | NotJson:
    """The value of a text that is JSON as a whole.

    NaN, Infinity, numbers that do not fit and nesting that no reader follows are refused, as RFC 8259 (section 9)
    lets a reader do.
    """
    try:
        value: Json = _DECODER.decode(text)
    except JSONDecodeError as error:
        return NotJson(f"not JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}")
    except RecursionError:
        return NotJson("not JSON that can be read: nested too deeply")
    except ValueError as error:
        return NotJson(str(error) if "digits" not in str(error) else "a number is too large")
    return value


def containers(text: str) -> Iterator[Json]:
    """Every outermost JSON object and array in a text, wherever it stands: in prose, in a fenced block, alone.

    The time is linear in the length of the text, whatever it holds.
    """
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        try:
            value, at = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            break
        yield value
    else:
        return
    for start, end in _spans(text, opening.start()):
        value = parse(text[start:end])
        if not isinstance(value, NotJson):
            yield value


def json_in(text: str, like: Json = None) -> Json | NotJson:
    """The JSON that an answer gives: all of it, or the first object or array in it.

    Args:
        text: the answer.
        like: an object or an array where only one of that kind will do; None: either.
    """
    whole = parse(text)
    if not isinstance(whole, NotJson):
        return whole
    for value in containers(text):
        if like is None or isinstance(value, Mapping) is isinstance(like, Mapping):
            return value
    return whole


_TOKEN = re.compile(
    r"""[ \t\n\r]*+(?:
          (?P<string>"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")
        | (?P<scalar>true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)
        | (?P<mark>[\[\]{},:])
    )""",
    re.VERBOSE,
)

_NEXT: dict[tuple[str, str], str] = {
    **{(state, kind): "after" for state in ("value", "item") for kind in ("string", "scalar")},
    **{(state, "["): "item" for state in ("value", "item")},
    **{(state, "{"): "member" for state in ("value", "item")},
    ("member", "string"): "colon",
    ("key", "string"): "colon",
    ("colon", ":"): "value",
    ("item", "]"): "after",
    ("member", "}"): "after",
    ("after", "]"): "after",
    ("after", "}"): "after",
    ("after", ","): "next",
}
"""JSON's grammar: (what is expected, what comes) → what is expected then. What is missing is a mistake.

`item` is a value or the end of an array, `member` a key or the end of an object, `next` what follows a comma.
"""

_CLOSES = {"]": "[", "}": "{"}


def _spans(text: str, at: int) -> Iterator[Span]:
    """Where the outermost objects and arrays of a text stand.

    Where a reading fails, whatever is open there can never be closed, and whatever was closed inside is JSON. So no
    bracket is read twice as a bracket: once as such, at most once more as part of what another reading took for a
    string. That is what keeps `[[[[…` linear.
    """
    seen = bytearray(len(text))
    while (opening := _OPENING.search(text, at)) is not None:
        start = at = opening.start()
        if not seen[start]:
            for span in _closed_from(text, start, seen):
                yield span
                seen[span[0] : span[1]] = b"\x01" * (span[1] - span[0])
        at += 1


def _closed_from(text: str, start: int, seen: bytearray) -> list[Span]:
    """The outermost spans that close properly when reading from a bracket on, until it closes or JSON ends."""
    open_at: list[int] = []
    closed: list[Span] = []
    state, at = "value", start
    while (token := _TOKEN.match(text, at)) is not None:
        at = token.end()
        kind = token.lastgroup if token.lastgroup != "mark" else text[at - 1]
        following = _NEXT.get((state, kind or ""))
        if following is None:
            break
        if kind in ("[", "{"):
            open_at.append(at - 1)
            seen[at - 1] = 1
            if len(open_at) > DEEPEST:
                break
        elif kind in ("]", "}"):
            if text[open_at[-1]] != _CLOSES[kind]:
                break
            _close(open_at.pop(), at, closed)
            if not open_at:
                break
        elif following == "next":
            following = "value" if text[open_at[-1]] == "[" else "key"
        state = following
    return closed


def _close(start: int, end: int, closed: list[Span]) -> None:
    while closed and closed[-1][0] > start:
        closed.pop()
    closed.append((start, end))
