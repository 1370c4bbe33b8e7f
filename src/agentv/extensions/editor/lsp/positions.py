"""Places in texts, as agentv counts them (characters from 1) and as editors do (mostly UTF-16 units from 0)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path
from pygls.workspace import PositionCodec

from agentv.extensions.editor.disk import bytes_of
from agentv.model.values.values import Span

_LINE_END = re.compile(r"\r\n|\r|\n")


def lines_of(text: str) -> list[str]:
    """The lines of a text without their ends, as the protocol counts them."""
    return _LINE_END.split(text)


def changed_text(text: str, changes: Sequence[types.TextDocumentContentChangeEvent], codec: PositionCodec) -> str:
    """A text after changes of the editor; pygls counts lines as Python does, which also ends them at U+2028."""
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            start = _offset(text, change.range.start, codec)
            end = max(start, _offset(text, change.range.end, codec))
            text = text[:start] + change.text + text[end:]
        else:
            text = change.text
    return text


def _offset(text: str, position: types.Position, codec: PositionCodec) -> int:
    """The character of a text that an editor means; the end of the text for what is behind it."""
    start = 0
    for _ in range(position.line):
        found = _LINE_END.search(text, start)
        if found is None:
            return len(text)
        start = found.end()
    found = _LINE_END.search(text, start)
    return start + column_in(text[start : found.start() if found else len(text)], position.character, codec)


def lines_of_file(path: str) -> list[str]:
    """The lines of a file on disk; none if it cannot be read."""
    try:
        return lines_of(bytes_of(path, {}).decode(errors="replace"))
    except OSError:
        return []


def uri_of(path: str) -> str:
    """The URI of an absolute path."""
    return from_fs_path(path) or Path(path).as_uri()


def column_in(line: str, units: int, codec: PositionCodec) -> int:
    """The character that an editor means by a number of units."""
    column = 0
    for letter in line:
        if units <= 0:
            break
        units -= codec.client_num_units(letter)
        column += 1
    return column


def place_in(lines: Sequence[str], position: types.Position, codec: PositionCodec) -> tuple[int, int]:
    """The line and column that an editor means, counted from 0; the end of the text for what is behind it."""
    if position.line >= len(lines):
        return max(len(lines) - 1, 0), len(lines[-1]) if lines else 0
    return position.line, column_in(lines[position.line], position.character, codec)


def range_of(span: Span, lines: Sequence[str], codec: PositionCodec) -> types.Range:
    """A span as an editor counts it."""
    start = _position(span.line - 1, span.column - 1, lines, codec)
    end = _position(span.end_line - 1, span.end_column - 1, lines, codec)
    return types.Range(start, max(start, end))


def range_in(line: int, start: int, end: int, lines: Sequence[str], codec: PositionCodec) -> types.Range:
    """A stretch of one line, counted from 0 in characters."""
    return types.Range(_position(line, start, lines, codec), _position(line, end, lines, codec))


def _position(line: int, column: int, lines: Sequence[str], codec: PositionCodec) -> types.Position:
    if not 0 <= line < len(lines):
        return types.Position(max(min(line, len(lines)), 0), 0)
    return types.Position(line, codec.client_num_units(lines[line][: max(column, 0)]))
