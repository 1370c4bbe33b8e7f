"""Texts split across JSON values, such as the events of a stream: joined for searching, and edited in place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import Struct, field

_DEEPEST = 100

Path = tuple[str, ...]
PathSuffix = Callable[[Any, int], Path]
"""Returns a suffix for a value's path, called with the value and its index in a list (-1 outside of lists).

Texts with the same path are joined, so the suffix keeps apart what must not be joined.
"""


class Change(NamedTuple):
    """A replacement of `text[first:last]` by another text."""

    first: int
    last: int
    by: str


class Piece(NamedTuple):
    """A piece of a joined text.

    Attributes:
        value: index of the value that contains it.
        number: index of the piece among the texts of that value.
        begin, end: its position in the joined text.
    """

    value: int
    number: int
    begin: int
    end: int


class JoinedText(Struct, frozen=True):
    """The texts at the same path of several values, joined."""

    pieces: list[Piece]
    text: str

    def inside(self, first: int, last: int) -> list[Piece]:
        """Return the pieces that overlap `text[first:last]`."""
        begins = attrgetter("begin")
        start = bisect_right(self.pieces, first, key=begins) - 1
        return self.pieces[start : bisect_right(self.pieces, last - 1, lo=start, key=begins)]


class PieceChanges(Struct):
    """Changes to pieces; changes to one piece must be added in order of position."""

    _by_value: dict[int, dict[int, list[Change]]] = field(default_factory=dict)

    def add(self, piece: Piece, change: Change) -> None:
        """Add the part of a change that falls in a piece; `change` has positions in the joined text."""
        first, last = max(change.first, piece.begin), min(change.last, piece.end)
        own = Change(first - piece.begin, last - piece.begin, change.by)
        self._by_value.setdefault(piece.value, {}).setdefault(piece.number, []).append(own)

    def values(self) -> Iterable[int]:
        """Return the indexes of the values that change."""
        return self._by_value

    def changed(self, number: int, value: Any) -> Any:
        """Return the value with this index, with its changes applied."""
        changes = self._by_value[number]
        texts = 0

        def change(one: Any, depth: int) -> Any:
            nonlocal texts
            if isinstance(one, str):
                one = with_changes(one, changes.get(texts, ()))
                texts += 1
            elif depth < _DEEPEST:
                if isinstance(one, dict):
                    return {key: change(inner, depth + 1) for key, inner in one.items()}
                if isinstance(one, list):
                    return [change(inner, depth + 1) for inner in one]
            return one

        return change(value, 0)


def with_changes(text: str, changes: Iterable[Change]) -> str:
    """Return a text with changes applied; these must be in order and must not overlap."""
    pieces: list[str] = []
    end = 0
    for first, last, by in changes:
        pieces += (text[end:first], by)
        end = last
    return "".join((*pieces, text[end:]))


def joined_texts(values: Iterable[Any], suffix: PathSuffix) -> list[JoinedText]:
    """Return the texts of some values, joined by path."""
    found: dict[Path, tuple[list[Piece], list[str]]] = {}
    for value, one in enumerate(values):
        for number, (path, text) in enumerate(_texts(one, suffix(one, -1), 0, suffix)):
            if text:
                pieces, texts = found.setdefault(path, ([], []))
                begin = pieces[-1].end if pieces else 0
                pieces.append(Piece(value, number, begin, begin + len(text)))
                texts.append(text)
    return [JoinedText(pieces, "".join(texts)) for pieces, texts in found.values()]


def _texts(value: Any, path: Path, depth: int, suffix: PathSuffix) -> Iterator[tuple[Path, str]]:
    """Yield all texts with their paths, in order."""
    if isinstance(value, str):
        yield path, value
    elif depth < _DEEPEST:
        if isinstance(value, dict):
            for key, one in value.items():
                yield from _texts(one, (*path, key, *suffix(one, -1)), depth + 1, suffix)
        elif isinstance(value, list):
            for number, one in enumerate(value):
                yield from _texts(one, (*path, *suffix(one, number)), depth + 1, suffix)
