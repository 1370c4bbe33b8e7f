"""Secrets in the native stream of an agent, which sends a text in pieces, each in a JSON object on a line of its own.

A model sends a few letters at a time, so that a secret is in no line as a whole. So the texts at one place of the
objects, such as `params.update.content.text`, are searched as one text.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from agentv.lazy_dataclass import dataclass
from agentv.model.secrets.redaction import REDACTED, Redactor

_DEEPEST = 100
_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A text: of which line, its number among the texts of that line, where it begins in the joined text."""

    line: int
    number: int
    begin: int


def redacted_stream(data: bytes, redactor: Redactor) -> bytes:
    """The lines, without the secrets whose pieces are in several of them. What is no JSON object stays as it is."""
    if not redactor or b"\n{" not in data:
        return data
    lines = data.split(b"\n")
    edits: dict[int, dict[int, list[tuple[int, int, str]]]] = {}
    for pieces, text in _joined(lines):
        begins = [one.begin for one in pieces]
        for first, last in redactor.stretches(text):
            inside = pieces[bisect_right(begins, first) - 1 : bisect_right(begins, last - 1)]
            for place, one in enumerate(inside if len(inside) > 1 else ()):
                by = "" if place else REDACTED
                cut = (max(first - one.begin, 0), last - one.begin, by)
                edits.setdefault(one.line, {}).setdefault(one.number, []).append(cut)
    for line, cuts in edits.items():
        lines[line] = _without(lines[line], cuts)
    return b"\n".join(lines)


def _joined(lines: list[bytes]) -> Iterator[tuple[list[_Piece], str]]:
    """The texts at each place of the objects, joined."""
    found: dict[_Path, tuple[list[_Piece], list[str]]] = {}
    lengths: dict[_Path, int] = {}
    for line, raw in enumerate(lines):
        for number, (path, text) in enumerate(_texts(_object(raw), ())):
            if text:
                pieces, texts = found.setdefault(path, ([], []))
                begin = lengths.get(path, 0)
                pieces.append(_Piece(line, number, begin))
                texts.append(text)
                lengths[path] = begin + len(text)
    for pieces, texts in found.values():
        if len(pieces) > 1:
            yield pieces, "".join(texts)


def _object(line: bytes) -> Any:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _texts(value: Any, path: _Path) -> Iterator[tuple[_Path, str]]:
    """All texts with their places, in order; entries of a list have one place."""
    if isinstance(value, str):
        yield path, value
    elif len(path) < _DEEPEST:
        if isinstance(value, dict):
            for key, one in value.items():
                yield from _texts(one, (*path, key))
        elif isinstance(value, list):
            for one in value:
                yield from _texts(one, (*path, "*"))


def _without(line: bytes, cuts: dict[int, list[tuple[int, int, str]]]) -> bytes:
    """A line with stretches of some of its texts replaced."""
    numbers = iter(range(len(line)))

    def cut(value: Any, depth: int) -> Any:
        if isinstance(value, str):
            for first, last, by in reversed(cuts.get(next(numbers), [])):
                value = value[:first] + by + value[last:]
        elif depth < _DEEPEST:
            if isinstance(value, dict):
                return {key: cut(one, depth + 1) for key, one in value.items()}
            if isinstance(value, list):
                return [cut(one, depth + 1) for one in value]
        return value

    return json.dumps(cut(json.loads(line), 0), separators=(",", ":"), ensure_ascii=False).encode(
        errors="surrogatepass"
    )
