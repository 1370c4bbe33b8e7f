"""Another status in the text of `meta.yaml`: only the value changes, or one line is added. Pure.

A rewriting is offered by `_edits` and taken only if the parser reads both texts alike, event by event, but for the
status. So a form of YAML that is not foreseen leads to a refusal, never to a damaged file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from stat import S_IMODE, S_ISREG
from typing import Any, TypeAlias

from agentv.errors import StoreError
from agentv.model.suite.exam import PromptStatus
from agentv.prompts.disk import DISK, Disk, put, sync_directory, sync_file, write_all
from agentv.user_code.files import store_error

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
        self.starts = list(accumulate((len(line) for line in _LINE.findall(text)), initial=0))
        self.root: Event | None = None
        self.pairs = self._pairs()
        own = [pair.value[0] for pair in self.pairs if is_scalar(pair.key) and pair.key.value == STATUS]
        if len(own) > 1:
            raise RewriteError(f"'{STATUS}' appears twice in it")
        self.status: Event | None = own[0] if own else None
        self.says = self._meaning(self.status) if own else None

    def offset(self, mark: Any) -> int:
        """Offset of a parser's mark in the text."""
        start: int = self.starts[mark.line] if mark.line < len(self.starts) else len(self.text)
        return min(start + int(mark.column), len(self.text))

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
        inner = [one for one in self.events if not type(one).__name__.startswith(("Stream", "Document"))]
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


def is_scalar(event: Event) -> bool:
    """Whether an event is a text, number, boolean or null."""
    return type(event).__name__ == "ScalarEvent"


def is_alias(event: Event) -> bool:
    """Whether an event is an alias of an anchor."""
    return type(event).__name__ == "AliasEvent"


_BOM = "\ufeff"
_ENDS = ("\n", "\r")
_BREAKS = re.compile("[\x85\u2028\u2029]")
_STRING_TAGS = frozenset({None, "!", "tag:yaml.org,2002:str"})


def with_status(data: bytes, to: PromptStatus) -> bytes:
    """The file with a status; the same bytes where it says so already.

    Raises:
        RewriteError: it is no YAML mapping, or changing the status alone is impossible.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RewriteError(f"it is not UTF-8 text (byte {error.start + 1})") from None
    if _BREAKS.search(text):
        raise RewriteError("it contains a line separator that YAML 1.1 and 1.2 read differently")
    before = MetaDocument(text)
    if before.status is not None and before.says == to:
        return data
    if before.status is not None and before.is_shared(before.status):
        raise RewriteError(
            f"other values use its status through the alias *{before.status.anchor}: write '{to}' yourself"
        )
    for edited in _edits(before, to):
        try:
            after = MetaDocument(edited)
        except RewriteError:
            continue
        if _differ_in_status_alone(before, after, to):
            return (_BOM if data.startswith(_BOM.encode()) else "").encode() + edited.encode()
    raise RewriteError(f"its status cannot be changed safely as it is written: write '{STATUS}: {to}' yourself")


def _differ_in_status_alone(before: MetaDocument, after: MetaDocument, to: PromptStatus) -> bool:
    """Whether two documents mean the same, but for the status, which is that of the second."""
    if after.status is None or not is_scalar(after.status):
        return False
    if after.status.value != to or after.status.tag not in _STRING_TAGS:
        return False
    return _other_events(before) == _other_events(after)


def _other_events(document: MetaDocument) -> list[tuple[Any, ...]]:
    """Everything but the status, as what can be compared."""
    events: list[tuple[Any, ...]] = []
    for pair in document.pairs:
        if not (is_scalar(pair.key) and pair.key.value == STATUS):
            for event in (pair.key, *pair.value):
                said = (event.implicit, event.value) if is_scalar(event) else ()
                events.append(
                    (type(event).__name__, getattr(event, "anchor", None), getattr(event, "tag", None), *said)
                )
    anchored = [document.root] if document.root is not None else []
    return events + [(one.anchor, one.tag) for one in anchored if one.anchor or one.tag]


def _edits(document: MetaDocument, to: PromptStatus) -> Iterator[str]:
    """Texts that may have the status, the likeliest first."""
    if document.status is None:
        yield from _with_a_line(document, to)
    else:
        yield from _with_the_value(document, document.status, to)


def _with_the_value(document: MetaDocument, status: Event, to: PromptStatus) -> Iterator[str]:
    text, start, end = document.text, document.offset(status.start_mark), document.offset(status.end_mark)
    if is_alias(status):
        yield text[:start] + to + text[end:]
        return
    if not is_scalar(status):
        return
    written, value = text[start:end], status.value.strip()
    if value and (found := written.rfind(value)) >= 0:
        yield text[: start + found] + to + text[start + found + len(value) :]
    if status.style in ("'", '"'):  # written with escapes, or empty
        yield text[: start + written.index(status.style) + 1] + to + text[end - 1 :]
    elif not value:  # nothing stands there; in braces not even a colon need stand before it
        yield f"{text[:end]} {to}{text[end:]}"
        yield f"{text[:end]}: {to}{text[end:]}"
    yield text[:start] + to + written[len(written.rstrip()) :] + text[end:]  # a block, whose line end belongs to it


def _with_a_line(document: MetaDocument, to: PromptStatus) -> Iterator[str]:
    text, root = document.text, document.root
    found = re.search(r"\r\n|\r|\n", text)
    line_end = found[0] if found else "\n"
    if root is None:
        yield f"{text}{'' if text.endswith(_ENDS) or not text else line_end}{STATUS}: {to}{line_end}"
        return
    if root.flow_style:
        yield from _in_braces(document, root, to)
        return
    indent = " " * document.pairs[0].key.start_mark.column
    end = _end_of(document)
    line = f"{indent}{STATUS}: {to}"
    own_line = f"{line}{line_end}" if text[:end].endswith(_ENDS) else f"{line_end}{line}"
    yield text[:end] + own_line + text[end:]
    start = document.starts[document.pairs[0].key.start_mark.line]
    yield f"{text[:start]}{indent}{STATUS}: {to}{line_end}{text[start:]}"


def _end_of(document: MetaDocument) -> int:
    """The begin of the line behind the last value of a mapping in lines."""
    last = document.pairs[-1].value[-1]
    inside = [event for event in document.pairs[-1].value if is_scalar(event) or is_alias(event)]
    # the end of a collection in lines is where the next thing begins; that of its last scalar is its own
    in_brackets = document.text[document.offset(last.start_mark) : document.offset(last.end_mark)] in ("]", "}")
    mark = inside[-1].end_mark if inside and not in_brackets else last.end_mark
    offset = document.offset(mark)
    if mark.column == 0 and offset:
        return offset
    following = [start for start in document.starts if start >= offset]
    return following[0] if following else len(document.text)


def _in_braces(document: MetaDocument, root: Event, to: PromptStatus) -> Iterator[str]:
    text = document.text
    if not document.pairs:
        brace = text.index("{", document.offset(root.start_mark)) + 1
        yield f"{text[:brace]}{STATUS}: {to}{text[brace:]}"
        return
    quote = '"' if document.pairs[0].key.style == '"' else ""
    end = document.offset(document.pairs[-1].value[-1].end_mark)
    yield f"{text[:end]}, {quote}{STATUS}{quote}: {quote}{to}{quote}{text[end:]}"


_TRIES = 5
_CHUNK = 1 << 20


def write_status(path: Path, to: PromptStatus, disk: Disk = DISK) -> None:
    """Write a status into a `meta.yaml`. Only the bytes of the value change, or one line is added.

    The new text goes to a file beside it, onto the disk, and then takes the place of the old one in one step. A link
    stays a link: the file that it leads to is written. Mode bits stay, and so does the owner where that is allowed.

    Raises:
        StoreError: there is no such file, it cannot be written, or its status cannot be changed without changing more.
    """
    real = Path(os.path.realpath(path))
    try:
        for _ in range(_TRIES):
            before, data = _read(real, disk)
            edited = with_status(data, to)
            if edited == data or _replace(real, before, edited, disk):
                return
    except RewriteError as error:
        raise StoreError(f"cannot write the status to {path}: {error}") from None
    except OSError as error:
        raise store_error("write", path, error) from error
    raise StoreError(f"cannot write {path}: other programs keep changing it")


def _read(path: Path, disk: Disk) -> tuple[os.stat_result, bytes]:
    descriptor = disk.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = disk.stat(descriptor)
        if not S_ISREG(found.st_mode):
            raise StoreError(f"cannot write {path}: it is not a file")
        parts: list[bytes] = []
        while part := disk.read(descriptor, _CHUNK, sum(map(len, parts))):
            parts.append(part)
        return found, b"".join(parts)
    finally:
        disk.close(descriptor)


def _replace(path: Path, before: os.stat_result, data: bytes, disk: Disk) -> bool:
    """Put the new text into the file's place; False where the file was changed during the exam, and is left alone."""

    def fill(descriptor: int) -> None:
        write_all(disk, descriptor, data)
        made = disk.stat(descriptor)  # some file systems give all files the same owner and mode bits
        if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
            with suppress(OSError):  # only root may give files away
                disk.own(descriptor, before.st_uid, before.st_gid)
        if S_IMODE(made.st_mode) != S_IMODE(before.st_mode):
            disk.permit(descriptor, S_IMODE(before.st_mode))
        sync_file(disk, descriptor)

    def is_same() -> bool:
        now = disk.stat_at(path)
        return all(getattr(before, key) == getattr(now, key) for key in ("st_dev", "st_ino", "st_size", "st_mtime_ns"))

    done = put(disk, path, fill, mode=0o600, still=is_same)
    if done:
        sync_directory(disk, path.parent)
    return done
