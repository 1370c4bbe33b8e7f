"""Position of a cursor in a YAML text, found by indentation so that it works while the text does not parse."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

_KEY = re.compile(
    r"""(?P<key>"[^"]*"|'[^']*'|[^\s#:{}\[\],'"&*!|>%@`-](?:[^#:{}\[\],]|:(?=\S))*?|-[^\s:]+)[ ]*:"""
    r"(?:[ ]+(?P<value>.*))?$"
)
_MARKERS = re.compile(r"(?:-[ ]+|-$)+")
_BLOCK_TEXT = re.compile(r"[|>][+-]?\d*[+-]?[ ]*(?:#.*)?$")
_COMMENT = re.compile(r"(?:^|\s)#")

ITEM = "-"
"""Element of a path that stands for an item of a list."""


class Cursor(Struct, frozen=True):
    """A position in a YAML text.

    Attributes:
        path: keys from the outermost mapping down to the innermost one; `ITEM` for an item of a list.
        levels: for each mapping on the path, outermost first, its other keys: key → the text after it on its line.
        key: key of the value that the cursor is in; None if it is in a key, or in an item that may become one.
        prefix: the part of the word before the cursor.
        start: column at which the word begins, in characters.
    """

    path: tuple[str, ...]
    levels: tuple[Mapping[str, str], ...]
    key: str | None
    prefix: str
    start: int

    @property
    def siblings(self) -> Mapping[str, str]:
        """The other keys of the innermost mapping."""
        return self.levels[-1]

    def skeleton(self) -> Any:
        """The data from the root to the cursor as far as known, with the other keys of each mapping on the path."""
        inner: Any = {key: _plain(value) for key, value in self.levels[-1].items()}
        for step, keys in zip(reversed(self.path), reversed(self.levels[:-1]), strict=True):
            inner = [inner] if step == ITEM else {**{key: _plain(value) for key, value in keys.items()}, step: inner}
        return inner


def cursor_at(lines: Sequence[str], line: int, column: int) -> Cursor | None:
    """The position of a cursor; None in a comment or a block scalar.

    Args:
        lines: lines of the text, without line ends.
        line: line of the cursor, counted from 0.
        column: column of the cursor, counted from 0, in characters.
    """
    text = lines[line] if line < len(lines) else ""
    left = text[:column]
    if _COMMENT.search(left) or line > len(lines):
        return None
    return _Walk(lines, line).cursor(left)


class _Flow(NamedTuple):
    """Flow collections (`{…}`, `[…]`) that are still open at the end of a line.

    Attributes:
        steps: path into the open collections.
        levels: the other keys at each step, the innermost mapping last.
        segment: the text after the last comma, brace or bracket.
        opened: whether any collection is open.
    """

    steps: list[str]
    levels: list[dict[str, str]]
    segment: str
    opened: bool


class _Walk:
    """Collects the path of a line by walking up to the outermost mapping."""

    def __init__(self, lines: Sequence[str], line: int) -> None:
        self._lines = lines
        self._line = line
        self._path: list[str] = []
        self._levels: list[dict[str, str]] = []

    def cursor(self, left: str) -> Cursor | None:
        """The cursor at the end of `left`, the part of its line before it; None in a block scalar."""
        indent, markers, content = _split(left)
        at = indent + len(markers)
        flow = _flow(content)
        key, prefix = _key_and_prefix(flow.segment, flow=flow.opened)
        if not self._climb(at, indent, markers, {} if flow.opened else self._below(at, markers)):
            return None
        path = [*reversed(self._path), *flow.steps]
        levels = [*reversed(self._levels), *flow.levels[1:]]
        levels[len(self._path)].update(flow.levels[0])
        if key is not None:
            levels[-1].pop(key, None)
        return Cursor(tuple(path), tuple(levels), key, prefix, len(left) - len(prefix))

    def _below(self, at: int, markers: str) -> dict[str, str]:
        """The keys of the same mapping on the following lines."""
        found: dict[str, str] = {}
        for line in self._lines[self._line + 1 :]:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            indent, inner, content = _split(line)
            if indent < at or (indent == at and inner and not markers):
                break
            if indent == at and not inner and (match := _KEY.match(content)) is not None:
                found[_unquoted(match["key"])] = match["value"] or ""
        return found

    def _climb(self, at: int, indent: int, markers: str, siblings: dict[str, str]) -> bool:
        """Walk up the lines and collect the path; return False if the cursor is in a block scalar."""
        self._levels.append(siblings)
        at, in_list = (self._into_lists(indent, markers), True) if markers else (at, False)
        for number in range(self._line - 1, -1, -1):
            line = self._lines[number]
            if len(line) - len(line.lstrip(" ")) > at or not line.strip() or line.lstrip().startswith("#"):
                continue
            indent, markers, content = _split(line)
            column, match = indent + len(markers), _KEY.match(content)
            is_above = column < at or (in_list and column == at and not markers)
            if match is None and column < at and not markers:
                return False  # the cursor is in a multi-line text
            if match is not None and is_above:
                if _BLOCK_TEXT.match(match["value"] or ""):
                    return False
                self._path.append(_unquoted(match["key"]))
                self._levels.append({})
                at, in_list = column, False
            elif match is not None and column == at and not in_list:
                self._levels[-1][_unquoted(match["key"])] = match["value"] or ""
            if markers and column == at and not in_list:
                at, in_list = self._into_lists(indent, markers), True
            if at == 0 and not in_list:
                self._add_outer_keys(number)
                break
        return True

    def _add_outer_keys(self, number: int) -> None:
        """Add the keys of the outermost mapping above a line."""
        for line in self._lines[:number]:
            if line[:1] not in {" ", "#", "-", ""} and (match := _KEY.match(line.rstrip())) is not None:
                self._levels[-1].setdefault(_unquoted(match["key"]), match["value"] or "")

    def _into_lists(self, indent: int, markers: str) -> int:
        """Add a line's list markers to the path, innermost first; return the column of the outermost."""
        for _ in range(markers.count("-")):
            self._path.append(ITEM)
            self._levels.append({})
        return indent


def _split(line: str) -> tuple[int, str, str]:
    """The indentation of a line, its list markers, and its content."""
    body = line.lstrip(" ")
    match = _MARKERS.match(body)
    markers = match[0] if match else ""
    return len(line) - len(body), markers, body[len(markers) :].rstrip("\r\n")


def _flow(content: str) -> _Flow:
    """The flow collections that are open at the end of a text."""
    opened = _open_brackets(content)
    steps: list[str] = []
    levels: list[dict[str, str]] = [{}]
    start = 0
    for letter, at in opened:
        before = content[start:at]
        levels[-1].update(_pairs(before))
        key, _ = _key_and_prefix(_last_part(before), flow=True)
        for step in [*([] if key is None else [key]), *([ITEM] if letter == "[" else [])]:
            steps.append(step)
            levels.append({})
        start = at + 1
    if not opened:
        return _Flow([], levels, content, opened=False)
    levels[-1].update(_pairs(content[start:]))
    return _Flow(steps, levels, _last_part(content[start:]), opened=True)


def _pairs(text: str) -> dict[str, str]:
    """The keys and values before the last comma."""
    found = (_KEY.match(part.strip()) for part in text.split(",")[:-1])
    return {_unquoted(match["key"]): match["value"] or "" for match in found if match}


def _open_brackets(content: str) -> list[tuple[str, int]]:
    """Each brace or bracket that is not closed, with its column."""
    opened: list[tuple[str, int]] = []
    quote = ""
    for at, letter in enumerate(content):
        begins = at == 0 or content[at - 1] in " {[,-:"
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and begins:
            quote = letter
        elif letter in "{[" and begins:
            opened.append((letter, at))
        elif letter in "}]" and opened:
            opened.pop()
    return opened


def _last_part(text: str) -> str:
    return text.rpartition(",")[2].lstrip()


def _key_and_prefix(segment: str, *, flow: bool) -> tuple[str | None, str]:
    """The key whose value has been started, or None, and the word at the end as far as it is written."""
    match = _KEY.match(segment)
    if match is not None and match["value"] is not None:
        return _unquoted(match["key"]), match["value"].lstrip("\"'")
    if match is not None and flow:
        return _unquoted(match["key"]), ""
    return None, segment.lstrip("\"'")


def _unquoted(text: str) -> str:
    return text[1:-1] if text[:1] in {"'", '"'} and text[-1:] == text[:1] and len(text) > 1 else text.strip()


def _plain(text: str) -> Any:
    """A guess at the value of a key from the text on its line; a mapping if none exists."""
    value = text.strip() if text[:1] in {"'", '"'} else re.split(r"(?:^|\s)#", text, maxsplit=1)[0].strip()
    if not value:
        return {}
    if value.startswith(("[", "{")):
        return [] if value.startswith("[") else {}
    return _unquoted(value)
