"""Places of names in a YAML text: what of them a new name replaces, and why one cannot be replaced."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, span_of
from agentv.extensions.editor.written_text import Quote
from agentv.model.values.span import Span

_QUOTES: Final[tuple[Quote, ...]] = ("'", '"')
_PROPERTIES = re.compile(r"(?:[&!]\S*[ \t]+)*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_TEXT_TAGS = frozenset([None, "!", "tag:yaml.org,2002:str"])


@dataclass(frozen=True, slots=True)
class NamePlace:
    """Where a name stands.

    Attributes:
        span: without an anchor and a tag, with quotes.
        quote: that the name has.
        fixed: why it cannot be replaced; empty: it can be.
    """

    span: Span
    quote: Quote = ""
    fixed: str = ""


class Places:
    """The places of one file.

    Args:
        data: of the file.
        root: as it was read from them.
        meanings: key → the kinds of names that stand under it.
        free: keys under which no names stand.
    """

    def __init__(self, data: bytes, root: Node, meanings: Mapping[str, Collection[str]], free: Collection[str]) -> None:
        self._lines = _LINE_END.split(data.decode("utf-8-sig", errors="replace"))
        self._shared = _shared(root, meanings, free) if b"&" in data else {}

    def of(self, node: Scalar, kind: str) -> NamePlace:
        """The place of a name of a kind."""
        span = span_of(node.at)
        if span.line != span.end_line or span.line > len(self._lines):
            return NamePlace(span, fixed="is written over several lines")
        found = self._lines[span.line - 1][span.column - 1 : span.end_column - 1].rstrip()
        text = _PROPERTIES.sub("", found, count=1)
        start = span.column + len(found) - len(text)
        quote: Quote = next((one for one in _QUOTES if text.startswith(one)), "")
        fixed = ""
        if text != node.text and not (quote and text.endswith(quote)):
            fixed = "is written in a way that cannot be replaced"
        elif getattr(node.at, "tag", None) not in _TEXT_TAGS:
            fixed = "has a tag that text cannot have"
        elif kind not in self._shared.get(id(node.at), (kind,)):
            fixed = "has an anchor, and an alias uses it for something else"
        return NamePlace(span._replace(column=start, end_column=start + len(text)), quote, fixed)


def _shared(root: Node, meanings: Mapping[str, Collection[str]], free: Collection[str]) -> dict[int, frozenset[str]]:
    """The kinds of names that each text with an anchor is in all of its places."""
    found: dict[int, frozenset[str]] = {}
    waiting: list[tuple[Node, str | None]] = [(root, "")]
    seen: set[tuple[int, str | None]] = set()
    while waiting:
        node, key = waiting.pop()
        if isinstance(node, Scalar):
            if getattr(node.at, "anchor", None):
                kinds = frozenset(meanings.get(key or "", ()))
                found[id(node.at)] = found.get(id(node.at), kinds) & kinds
        elif (id(node), key) not in seen:
            seen.add((id(node), key))
            if isinstance(node, ListNode):
                waiting += [(item, key) for item in node.items]
            elif isinstance(node, MapNode):
                found.update({id(at): frozenset() for at in node.keys.values() if getattr(at, "anchor", None)})
                inside = None if key is None or key in free else key
                is_top = node is root
                for name, value in node.items.items():
                    waiting.append((value, _key_for(name, inside, is_top=is_top)))
    return found


def _key_for(name: str, outer: str | None, *, is_top: bool) -> str | None:
    """The key that tells what a value means; None in data, and for the name of the file itself."""
    return None if outer is None or (is_top and name in {"id", "name"}) else name
