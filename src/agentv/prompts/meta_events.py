"""`meta.yaml` as the events of its parser, with the place of its status."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

STATUS = "status"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class RewriteError(ValueError):
    """The text cannot be given another status; says why, in the words of a user."""


Event: TypeAlias = Any


@dataclass(slots=True)
class MetaPair:
    """A key of the outermost mapping: its event, and those of its value."""

    key: Event
    value: list[Event]


class MetaDocument:
    """A text as libyaml's events, and its outermost mapping.

    Attributes:
        root: the event that begins the mapping; None where the document is empty.
        status: the event of the status's value; None where the mapping itself has none.
        says: what that value is, aliases followed; None where it is no scalar.

    Raises:
        RewriteError: the text is no YAML, or not one document with a mapping.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.events = _events(text)
        self.starts = _line_starts(text)
        self.root: Event | None = None
        self.pairs = self._pairs()
        own = [pair.value[0] for pair in self.pairs if is_scalar(pair.key) and pair.key.value == STATUS]
        if len(own) > 1:
            raise RewriteError(f"'{STATUS}' appears twice in it")
        self.status: Event | None = own[0] if own else None
        self.says = self._meaning(self.status) if own else None

    def offset(self, mark: Any) -> int:
        """Offset of a parser's mark in the text."""
        return (
            min(self.starts[mark.line] + mark.column, len(self.text))
            if mark.line < len(self.starts)
            else len(self.text)
        )

    def is_shared(self, event: Event) -> bool:
        """Whether an alias also refers to the value."""
        anchor = None if is_alias(event) else event.anchor
        return anchor is not None and any(is_alias(one) and one.anchor == anchor for one in self.events)

    def _meaning(self, event: Event) -> str | None:
        if not is_alias(event):
            return event.value if is_scalar(event) else None
        named = [one for one in self.events if is_scalar(one) and one.anchor == event.anchor]
        return named[-1].value if named else None

    def _pairs(self) -> list[MetaPair]:
        inner = [one for one in self.events if not _is_frame(one)]
        if not inner or (is_scalar(inner[0]) and not inner[0].value and inner[0].implicit[0]):
            return []
        if type(inner[0]).__name__ != "MappingStartEvent":
            raise RewriteError("it is not a mapping")
        self.root = inner[0]
        return _pairs(inner[1:-1])


def _pairs(inner: list[Event]) -> list[MetaPair]:
    """The keys of a mapping, with the events of their values, nested ones included."""
    found: list[list[Event]] = []
    depth = 0
    for event in inner:
        if depth == 0:
            found.append([])
        found[-1].append(event)
        depth += _STEPS.get(type(event).__name__, 0)
    return [MetaPair(key[0], value) for key, value in zip(found[::2], found[1::2], strict=True)]


_STEPS = {"MappingStartEvent": 1, "SequenceStartEvent": 1, "MappingEndEvent": -1, "SequenceEndEvent": -1}


def _events(text: str) -> list[Event]:
    from yaml import YAMLError
    from yaml._yaml import CParser

    parser = CParser(text)
    found = []
    try:
        while (event := parser.get_event()) is not None:
            found.append(event)
    except YAMLError as error:
        raise RewriteError(f"it is not valid YAML: {getattr(error, 'problem', None) or error}") from None
    if sum(type(event).__name__ == "DocumentStartEvent" for event in found) > 1:
        raise RewriteError("it contains more than one document")
    return found


def _line_starts(text: str) -> list[int]:
    return list(accumulate((len(line) for line in _LINE.findall(text)), initial=0))


def is_scalar(event: Event) -> bool:
    """Whether an event is a text, number, boolean or null."""
    return type(event).__name__ == "ScalarEvent"


def is_alias(event: Event) -> bool:
    """Whether an event is an alias of an anchor."""
    return type(event).__name__ == "AliasEvent"


def _is_frame(event: Event) -> bool:
    return type(event).__name__.startswith(("Stream", "Document"))
