"""Texts of a model's reply: joined where a stream sends one in pieces, and replaced without a change of its events.

Pieces are one text if their events name the same place: the block, choice, tool call or output item with one number.
A text that an event repeats whole is one by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

from agentv.model.values.joined_texts import Change, JoinedText, Path, PieceChanges, joined_texts, with_changes

_EVENT = "data:"
_NUMBERS = ("index", "output_index", "content_index", "summary_index", "item_id", "thought")
"""Keys that tell texts of one stream apart."""

_KINDS = "response."
"""How the types of OpenAI's events begin, of which some repeat a text whole."""

_WHOLE = "functionCall"
"""Key of what is never sent in pieces."""


def replaced_texts(body: bytes, find: Callable[[str], Iterable[Change]]) -> bytes:
    """A reply with some stretches of its texts replaced; one that is no text as it is.

    Args:
        body: of the reply.
        find: gets a whole text; what to replace in it, in order.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return body
    whole = _loaded(text)
    if isinstance(whole, list):
        changed = _changed(whole, find)
        entries = ",\n".join(_written(changed.get(number, one)) for number, one in enumerate(whole))
        return f"[{entries}]".encode() if changed else body
    if whole is not None:
        changed = _changed([whole], find)
        return _written(changed[0]).encode() if changed else body
    lines = text.split("\n")
    events = [_event(line) for line in lines]
    changed = _changed(events, find)
    for number, line in enumerate(lines):
        if number in changed:
            end = "\r" if line.endswith("\r") else ""
            lines[number] = f"{_EVENT} {_written(changed[number])}{end}"
        elif events[number] is None:  # one that was cut off, or no stream at all
            lines[number] = with_changes(line, find(line))
    written = "\n".join(lines)
    return body if written == text else written.encode()


def reply_texts(body: bytes) -> Iterator[str]:
    """The texts of a reply, so that nothing hides at the border of two pieces."""
    text = body.decode(errors="replace")
    whole = _loaded(text)
    if whole is None:
        values = [_event(line) for line in text.split("\n")]
    else:
        values = whole if isinstance(whole, list) else [whole]
    for joined in _joined(values):
        yield joined.text


def _changed(values: list[Any], find: Callable[[str], Iterable[Change]]) -> dict[int, Any]:
    """The values that change, by their numbers."""
    changes = PieceChanges()
    for joined in _joined(values):
        for change in find(joined.text):
            _spread(joined, change, changes)
    return {number: changes.changed(number, values[number]) for number in changes.values()}


def _spread(joined: JoinedText, change: Change, changes: PieceChanges) -> None:
    """Put a text into the first piece of a stretch, and a part of it into each other that would be empty without it.

    Some programs take an event with an empty text for an error of the server.
    """
    inside = joined.inside(change.first, change.last)
    emptied = [one for one in inside[1:] if one.end <= change.last]
    parts, taken = 1 + len(emptied), 0
    for piece in inside:
        if piece is not inside[0] and piece.end > change.last:
            changes.add(piece, change._replace(by=""))
            continue
        part = slice(taken * len(change.by) // parts, (taken + 1) * len(change.by) // parts)
        changes.add(piece, change._replace(by=change.by[part]))
        taken += 1


def _joined(values: list[Any]) -> list[JoinedText]:
    wholes = count()

    def place(value: Any, number: int) -> Path:
        own = [] if number < 0 else [f"#{number}"]
        if isinstance(value, dict):
            numbers = [f"{key}={value[key]}" for key in _NUMBERS if isinstance(value.get(key), str | int)]
            own = numbers if "index" in value else own + numbers
            kind = value.get("type")
            if isinstance(kind, str) and kind.startswith(_KINDS):
                own.append(kind)
            if _WHOLE in value:
                own.append(f"whole={next(wholes)}")
        return tuple(own)

    return joined_texts(values, place)


def _event(line: str) -> Any:
    """The value of a line of a stream; None: it has none."""
    return _loaded(line.removeprefix(_EVENT)) if line.startswith(_EVENT) else None


def _loaded(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _written(value: Any) -> str:
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError:  # half a letter of two, which only an escape can say
        return json.dumps(value, separators=(",", ":"))
    return written
