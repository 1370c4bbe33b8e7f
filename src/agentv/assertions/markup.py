"""Tags in text that a model wrote: found in one pass, whatever stands around them. No entity is ever expanded.

What XML and HTML share. A tag that is never closed by `>`, such as in `a < b`, is text.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["open", "close", "alone", "doctype", "comment", "broken"]

_TAG = re.compile(r"""<(/?)([A-Za-z_:][^\s/<>"'=]*)((?:[^"'<>]|"[^"]*"|'[^']*')*+)>""")
_DOCTYPE = re.compile(r"<!doctype\b[^<>]*>", re.IGNORECASE)
_SKIPPED = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
"""What begins a stretch without tags → what ends it."""


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag, or one stretch that holds none.

    Attributes:
        kind: `alone` is `<a/>`; `broken` is a comment or the like without an end, which is where reading stops.
        name: as written; empty for `comment` and `broken`.
        start, end: where it stands in the text.
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
    """
    at = text.find("<")
    while at >= 0:
        tag = _tag_at(text, at)
        if tag is None:
            at = text.find("<", at + 1)
            continue
        yield tag
        if tag.kind == "broken":
            return
        at = tag.end
        if tag.kind == "open" and tag.name.lower() in raw:
            closing = re.compile(rf"</{re.escape(tag.name)}(?=[\s/>])", re.IGNORECASE).search(text, at)
            if closing is None:
                return
            at = closing.start()
        at = text.find("<", at)


def _tag_at(text: str, at: int) -> Tag | None:
    for begin, end in _SKIPPED.items():
        if text.startswith(begin, at):
            stop = text.find(end, at + len(begin))
            return Tag("broken", "", at, len(text)) if stop < 0 else Tag("comment", "", at, stop + len(end))
    doctype = _DOCTYPE.match(text, at)
    if doctype is not None:
        return Tag("doctype", doctype[0][2:-1], at, doctype.end())
    match = _TAG.match(text, at)
    if match is None:
        return None
    kind: Kind = "close" if match[1] else "alone" if match[3].endswith("/") else "open"
    return Tag(kind, match[2], at, match.end())


def place(text: str, at: int) -> str:
    """A place in a text, as `line 2, column 5`; both begin at 1."""
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"
