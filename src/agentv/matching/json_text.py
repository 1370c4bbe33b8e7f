"""JSON in what a model wrote: read strictly, found anywhere, and never slower than the text is long (RFC 8259)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from json import JSONDecodeError, JSONDecoder

from msgspec import Struct

from agentv.model.values.values import Json, lazy_pattern

Span = tuple[int, int]

DEEPEST = 1000
"""Objects and arrays inside each other that a search follows; Python's own reader stops about there."""

STEPS = 500_000
"""Values that a search may pass over, and tokens of JSON that is broken that it may read: a second or two."""

_TRIES = 20
"""Objects and arrays that a search first gives to Python's reader, which is quicker, even where others are broken."""


class UnsearchableError(Exception):
    """A text has more brackets or values than the limit, so its content is unknown; the message says which."""


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

_NESTED = lazy_pattern(
    rf"""(?: \[[ \t\n\r]*+ | \{{[ \t\n\r]*+ "[^"\\\x00-\x1f\[\]{{}}]*+" [ \t\n\r]*+:[ \t\n\r]*+ ){{{DEEPEST}}}""",
    re.VERBOSE,
)
"""As many brackets one inside the other as are followed, none of them in a text."""


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


def containers(text: str) -> Iterator[Json]:
    """Every outermost JSON object and array in a text: in prose, in a fenced block, or alone.

    The time is linear in the length of the text, whatever it holds.

    Raises:
        UnsearchableError: before the first value or behind one; what was yielded till then is right.
    """
    at = passed = 0
    while (opening := _OPENING.search(text, at)) is not None:
        passed += 1
        if passed > STEPS:
            raise UnsearchableError(f"more than {STEPS:,} objects and arrays")
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


_TOKEN = lazy_pattern(
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
    left, tries = STEPS, _TRIES
    while (opening := _OPENING.search(text, at)) is not None:
        start = opening.start()
        at = start + 1
        if seen[start]:
            continue
        if tries:
            try:
                at = _DECODER.raw_decode(text, start)[1]
            except (ValueError, RecursionError):
                tries -= 1
            else:
                yield start, at
                continue
        if (behind := _too_deep(text, start)) > start:
            at = behind
            continue
        closed, read = _closed_from(text, start, seen, left)
        left -= read
        if left < 0:
            raise UnsearchableError(f"more than {STEPS:,} brackets and values of JSON that is broken")
        for span in closed:
            yield span
            seen[span[0] : span[1]] = b"\x01" * (span[1] - span[0])


def _too_deep(text: str, start: int) -> int:
    """The first of nested brackets that does not hold more of them than are followed; `start` itself where it is that.

    What stands before it is open beyond that depth, so that no reading which begins there closes.
    """
    run = _NESTED.match(text, start)
    while run is not None and (beyond := _NESTED.match(text, run.end())) is not None:
        start, run = run.end(), beyond
    return start


def _closed_from(text: str, start: int, seen: bytearray, most: int) -> tuple[list[Span], int]:
    """The outermost spans that close properly when reading from a bracket on, until it closes or JSON ends.

    And how many tokens were read; more than `most` where that is why the reading ended.
    """
    open_at: list[int] = []
    closed: list[Span] = []
    state, at, read = "value", start, 1
    while read <= most and (token := _TOKEN.match(text, at)) is not None:
        at = token.end()
        read += 1
        kind = token.lastgroup if token.lastgroup != "mark" else text[at - 1]
        following = _NEXT.get((state, kind or ""))
        if following is None:
            break
        if kind in ("[", "{"):
            if len(open_at) == DEEPEST:
                break  # and what begins here is read from here
            open_at.append(at - 1)
            seen[at - 1] = 1
        elif kind in ("]", "}"):
            if text[open_at[-1]] != _CLOSES[kind]:
                break
            begin = open_at.pop()
            while closed and closed[-1][0] > begin:
                closed.pop()
            closed.append((begin, at))
            if not open_at:
                break
        elif following == "next":
            following = "value" if text[open_at[-1]] == "[" else "key"
        state = following
    return closed, read
