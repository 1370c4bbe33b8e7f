"""Texts that are new for each trial, in the replies of its model: a cassette holds placeholders for them.

A model repeats paths that its agent sent, in its text and in the arguments of tools. In a replay they are
others. So the path of `a.txt` in the workspace is kept as `[agentv:workspace]/a.txt`. A form is kept with it:
`[agentv:workspace:1]` for a path with one backslash before each slash, `[agentv:workspace:dashed]` for one whose signs
became `-`. What looks like a placeholder itself begins with `[agentv:literal]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from agentv.model.values.joined_texts import Change, JoinedText, Path, PieceChanges, joined_texts, with_changes
from agentv.model.values.trace import ModelReply
from agentv.model.values.values import lazy_pattern

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


_OPENING = "[agentv:"
_LITERAL = "literal"
_DASHED = "dashed"
_PLACEHOLDER = lazy_pattern(r"\[agentv:(?P<name>[a-z]+)(?::(?P<form>[1-8]|dashed))?\]")

_OF_PATH = lazy_pattern(r"[\w.~/-]*", re.ASCII)
_BEHIND = r"(?![\w-]|\.[\w-])"
"""What does not follow a whole path."""

_LONGEST = 400
"""Characters before a path in which the beginning of a longer one is looked for."""

_FEWEST_NAMES = 2
"""Fewest names in a path whose form with dashes is distinct from ordinary words."""


class TrialTexts:
    """Replaces the texts of one trial by placeholders, and placeholders by the texts of another.

    Args:
        texts: text → what stands for it, such as the path of a workspace → `[workspace]`.
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        names = {text: name.strip("[]") for text, name in (texts or {}).items()}
        longest_first = sorted(names, key=len, reverse=True)
        self._texts = {text: names[text] for text in longest_first if len(text) > 1}  # not the root directory
        self._by_name = {name: text for text, name in names.items()}
        self._patterns: dict[bool, re.Pattern[str]] = {}

    def kept(self, reply: ModelReply) -> ModelReply:
        """A reply as it is recorded."""
        return _with_body(reply, replaced_texts(reply.body, self._placeholders_in))

    def given(self, reply: ModelReply) -> ModelReply:
        """A recorded reply as this trial gets it."""
        if _OPENING[:1].encode() not in reply.body:
            return reply
        return _with_body(reply, replaced_texts(reply.body, self._texts_in))

    def _placeholders_in(self, text: str) -> Iterator[Change]:
        """Where to put placeholders into a text."""
        names = list(self._texts.values())
        for found in self._pattern(_is_json(text)).finditer(text):
            first, last = found.span()
            group = found.lastgroup or ""
            if group == _LITERAL:
                yield Change(first, last, f"{_OPENING}{_LITERAL}]")
                continue
            kind, number = group[0], int(group[1:])
            if kind == "p" and _is_inside_path(text, first):
                continue
            form = _DASHED if kind == "d" else len(found[f"s{number}"]) if kind == "p" else 0
            yield Change(first, last, f"{_OPENING}{names[number]}{f':{form}' if form else ''}]")

    def _texts_in(self, text: str) -> Iterator[Change]:
        """Where to put the trial's own texts into a recorded one."""
        is_json = _is_json(text)
        for found in _PLACEHOLDER.finditer(text):
            name, form = found["name"], found["form"] or ""
            own = _OPENING if name == _LITERAL else self._by_name.get(name)
            if own is None:
                continue
            if form == _DASHED:
                own = dashed(own)
            elif is_json:
                own = _in_json(own)
            if form.isdigit():
                own = own.replace("/", "\\" * int(form) + "/")
            yield Change(*found.span(), own)

    def _pattern(self, is_json: bool) -> re.Pattern[str]:
        """What finds the texts, longest first."""
        if is_json not in self._patterns:
            forms = [rf"(?P<{_LITERAL}>{re.escape(_OPENING)})"]
            for number, text in enumerate(self._texts):
                forms += _forms(number, _in_json(text) if is_json else text)
            self._patterns[is_json] = re.compile("|".join(forms), re.ASCII)
        return self._patterns[is_json]


def dashed(path: str) -> str:
    """A path as agents name the directory that they make for a project."""
    return re.sub("[^A-Za-z0-9]", "-", path)


def _forms(number: int, text: str) -> Iterator[str]:
    """Patterns of a text, each a group named by its kind and number."""
    if not text.startswith("/"):
        yield f"(?P<t{number}>{re.escape(text)})"
        return
    names = text.strip("/").split("/")
    rest = "".join(rf"(?P=s{number})/{re.escape(name)}" for name in names[1:])
    yield rf"(?P<p{number}>(?P<s{number}>\\{{0,8}})/{re.escape(names[0])}{rest}{_BEHIND})"
    if len(names) >= _FEWEST_NAMES:
        yield rf"(?P<d{number}>(?<![\w-]){re.escape(dashed(text.rstrip('/')))}(?![A-Za-z0-9]))"


def _is_inside_path(text: str, at: int) -> bool:
    """Whether a path that begins here goes on from what stands before: `/srv` before `/root`."""
    before = _OF_PATH.match(text[max(at - _LONGEST, 0) : at][::-1])
    run = "" if before is None else before[0].lstrip("/")
    return "/" in run or (run != "" and not run.strip(".~"))


def _is_json(text: str) -> bool:
    """Whether a text is JSON itself, as the arguments of tools are."""
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _with_body(reply: ModelReply, body: bytes) -> ModelReply:
    return reply if body is reply.body else ModelReply(reply.status, reply.content_type, body, complete=reply.complete)
