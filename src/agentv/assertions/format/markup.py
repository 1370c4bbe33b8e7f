"""Tags in text that a model wrote: found in one pass, in any surrounding text. No entity is ever expanded.

Shared by XML and HTML. A tag that is never closed by `>`, such as in `a < b`, is text.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["open", "close", "alone", "doctype", "comment", "broken"]

MOST_TAGS = 500_000
"""Tags of one text that are read: a second or two."""

_MARK = re.compile(
    r"""<(?: (?P<skip> !-- | !\[CDATA\[ | \? )
          | (?P<doctype> !(?i:doctype)\b[^<>]*+ )>
          | (?P<close>/?) (?P<name>[A-Za-z_:][^\s/<>"'=]*) (?P<rest>(?:[^"'<>]|"[^"]*"|'[^']*')*+) >
        )""",
    re.VERBOSE,
)
"""Whatever is a tag, or begins a stretch without tags; what only looks like one is passed over in one go."""

_SKIPPED = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
"""What begins a stretch without tags → what ends it."""


class TooManyTagsError(Exception):
    """A text has more tags than the limit, so its content is unknown."""


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag, or one stretch that holds none.

    Attributes:
        kind: `alone` is `<a/>`; `broken` is a comment or the like without an end, which is where reading stops.
        name: as written; empty for `comment` and `broken`.
        start, end: its position in the text.
    """

    kind: Kind
    name: str
    start: int
    end: int


def tags(text: str, raw: Container[str] = frozenset()) -> Iterator[Tag]:
    """The tags of a text, in their order.

    Args:
        text: anything.
        raw: names (lower case) of elements whose content is text, up to their closing tag: `script` of HTML.

    Raises:
        TooManyTagsError: behind the last that is read.
    """
    at = count = 0
    while (match := _MARK.search(text, at)) is not None:
        count += 1
        if count > MOST_TAGS:
            raise TooManyTagsError
        tag = _tag_of(text, match)
        yield tag
        if tag.kind == "broken":
            return
        at = tag.end
        if tag.kind == "open" and tag.name.lower() in raw:
            closing = re.compile(rf"</{re.escape(tag.name)}(?=[\s/>])", re.IGNORECASE).search(text, at)
            if closing is None:
                return
            at = closing.start()


def _tag_of(text: str, match: re.Match[str]) -> Tag:
    at = match.start()
    if match["skip"]:
        end = _SKIPPED[match[0]]
        stop = text.find(end, match.end())
        return Tag("broken", "", at, len(text)) if stop < 0 else Tag("comment", "", at, stop + len(end))
    if match["doctype"]:
        return Tag("doctype", match["doctype"][1:], at, match.end())
    kind: Kind = "close" if match["close"] else "alone" if match["rest"].endswith("/") else "open"
    return Tag(kind, match["name"], at, match.end())


def place(text: str, at: int) -> str:
    """A place in a text, as `line 2, column 5`; both begin at 1."""
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"
