"""Texts that are new in each trial, in the replies of its model: a cassette stores placeholders for them.

A model repeats paths that its agent sent, in its text and in the arguments of tools. In a replay, these paths differ.
Therefore the path of `a.txt` in the workspace is stored as `[agentv:workspace]/a.txt`, and the dashed form of the
workspace's path as `[agentv:workspace:dashed]`. In a text that looks like a placeholder, `[agentv:` becomes
`[agentv:literal]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from agentv.model.values.joined_texts import Change, JoinedText, Path, PieceChanges, joined_texts, with_changes
from agentv.model.values.trace import ModelReply

_EVENT = "data:"
_NUMBERS = ("index", "output_index", "content_index", "summary_index", "item_id", "thought")
"""Keys that distinguish the texts of one stream."""

_KINDS = "response."
"""Prefix of the types of OpenAI's events, some of which repeat a whole text."""

_WHOLE = "functionCall"
"""Key of a value that is never sent in pieces."""


def replaced_texts(body: bytes, find: Callable[[str], Iterable[Change]]) -> bytes:
    """Return a reply with parts of its texts replaced; binary data is returned unchanged.

    Args:
        body: body of the reply.
        find: returns the changes to a whole text, in order.
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
        elif events[number] is None:  # an event that was cut off, or not a stream
            lines[number] = with_changes(line, find(line))
    written = "\n".join(lines)
    return body if written == text else written.encode()


def reply_texts(body: bytes) -> Iterator[str]:
    """Yield the texts of a reply, joined from their pieces, so that nothing is missed where two pieces meet."""
    text = body.decode(errors="replace")
    whole = _loaded(text)
    if whole is None:
        values = [_event(line) for line in text.split("\n")]
    else:
        values = whole if isinstance(whole, list) else [whole]
    for joined in _joined(values):
        yield joined.text


def _changed(values: list[Any], find: Callable[[str], Iterable[Change]]) -> dict[int, Any]:
    """Return the changed values by index."""
    changes = PieceChanges()
    for joined in _joined(values):
        for change in find(joined.text):
            _spread(joined, change, changes)
    return {number: changes.changed(number, values[number]) for number in changes.values()}


def _spread(joined: JoinedText, change: Change, changes: PieceChanges) -> None:
    """Put a replacement into the first piece that it changes, and parts of it into pieces that would become empty.

    Some programs treat an event with an empty text as a server error.
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
    """Return the value of a line in a stream, or None if it has none."""
    return _loaded(line.removeprefix(_EVENT)) if line.startswith(_EVENT) else None


def _loaded(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _written(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


_OPENING = "[agentv:"
_BEHIND = r"(?![\w-]|\.[\w-])"
"""Lookahead that a path ends here."""


class TrialTexts:
    """Replaces the texts of one trial with placeholders, and placeholders with the texts of another.

    Args:
        texts: text → its placeholder, such as the path of a workspace → `[workspace]`.
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        forms = {_OPENING: f"{_OPENING}literal]"}
        for text, name in (texts or {}).items():
            bare = name.strip("[]")
            if len(text) > 1:  # not the root directory
                forms[text] = f"{_OPENING}{bare}]"
            if text.count("/") > 1:  # the dashed form of a single name is too much like a word
                forms[dashed(text)] = f"{_OPENING}{bare}:dashed]"
        self._placeholders, self._texts = forms, {placeholder: text for text, placeholder in forms.items()}
        longest_first = sorted(forms, key=len, reverse=True)
        found = (re.escape(text) + (_BEHIND if text != _OPENING else "") for text in longest_first)
        self._texts_pattern = re.compile("|".join(found), re.ASCII)
        self._placeholders_pattern = re.compile("|".join(map(re.escape, self._texts)))

    def to_recorded(self, reply: ModelReply) -> ModelReply:
        """Return a reply in the form in which it is recorded."""
        return _replaced(reply, self._texts_pattern, self._placeholders)

    def from_recorded(self, reply: ModelReply) -> ModelReply:
        """Return a recorded reply with the texts of this trial."""
        return _replaced(reply, self._placeholders_pattern, self._texts) if b"[" in reply.body else reply


def _replaced(reply: ModelReply, pattern: re.Pattern[str], by: Mapping[str, str]) -> ModelReply:
    def changes(text: str) -> Iterator[Change]:
        return (Change(*found.span(), by[found[0]]) for found in pattern.finditer(text))

    body = replaced_texts(reply.body, changes)
    return reply if body is reply.body else ModelReply(reply.status, reply.content_type, body, complete=reply.complete)


def dashed(path: str) -> str:
    """Return a path with `-` for all but letters and digits, as agents name the directory of a project."""
    return re.sub("[^A-Za-z0-9]", "-", path)
