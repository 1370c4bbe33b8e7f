"""YAML 1.2 core schema, read from libyaml's events into nodes with positions.

PyYAML's composer is not used, because its recursion cannot be limited and it holds a whole file in memory.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import Any

from msgspec import Struct
from yaml import YAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from agentv.authoring.source.masking import check_keys
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, kind_of, span_at, span_of
from agentv.authoring.source.report import Report, Result
from agentv.errors import Diagnostic
from agentv.model.values.values import lazy_pattern

TAGS = "tag:yaml.org,2002:"
"""Prefix that `!!` stands for."""

SPECIAL = frozenset("nN~tTfF+-.0123456789")
"""First characters of plain scalars that may be something other than text."""

_WORDS = {
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INT = lazy_pattern(r"[-+]?[0-9]+")
_BASED = lazy_pattern(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = lazy_pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DIGITS = 400
"""Maximum length of a number. Longer scalars are text, as no float has that many significant digits."""


def resolve(text: str) -> bool | int | float | str | None:
    """The value of a plain scalar without a tag."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _DIGITS:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _of_type(*types: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = resolve(text)
        if type(value) not in types:
            raise ValueError(text)
        return value

    return read


TAGGED: dict[str, Callable[[str], Any]] = {
    f"{TAGS}str": str,
    f"{TAGS}null": _of_type(type(None)),
    f"{TAGS}bool": _of_type(bool),
    f"{TAGS}int": _of_type(int),
    f"{TAGS}float": lambda text: float(_of_type(int, float)(text)),
    "!": str,
}
"""Tag → function that converts a text to a value, or raises ValueError."""

MAPPINGS = (None, "!", f"{TAGS}map")
LISTS = (None, "!", f"{TAGS}seq")
"""Tags that a mapping and a list may have."""

KEYS = (None, "!", f"{TAGS}str")
"""Tags that a key may have; a key is always text."""


def shorthand(tag: str) -> str:
    """A tag as authored, with `!!` for YAML's own prefix."""
    return f"!!{tag.removeprefix(TAGS)}" if tag.startswith(TAGS) else tag


DEPTH_LIMIT = 100
"""Maximum levels of nesting, with aliases expanded, because the functions that walk nodes are recursive."""

SIZE_LIMIT = 2_000_000
"""Maximum number of nodes that all aliases together expand to: a small file can expand to a billion."""

NODE_LIMIT = 400_000
"""Maximum number of nodes in memory at once when cases are streamed: those of one case, or all those outside cases."""

Sink = Callable[[Node], None]
Begin = Callable[[MapNode], Sink | None]
"""Called when the list of cases begins, with the mapping as read so far. Returns the sink, or None not to stream."""


class _Stream(BytesIO):
    """Bytes with a `name`, which libyaml copies into every mark."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


def read_yaml(
    path: str, data: bytes, report: Report, *, stream: tuple[frozenset[str], Begin] | None = None
) -> Result[Node | None]:
    """The first document of a YAML file as nodes; None if the file is empty or cannot be read.

    Args:
        path: shown in positions.
        data: the file's bytes; a UTF-8 BOM and CRLF are accepted.
        report: receives `bad-yaml`, `duplicate-key`, `not-utf-8`, `too-deep` and similar diagnostics.
        stream: keys of the outermost mapping, and a callback that returns a sink for the items of a list under one of
            them. The sink gets the items one by one, so that the nodes of a long list are never all in memory, and the
            list itself stays empty. Neither an item nor the rest of the file may have more than `NODE_LIMIT` nodes.
    """
    report = report.section()
    wrong = unreadable(path, data)
    if wrong is not None:
        report.add(wrong)
        return Result(None, valid=False)
    if report.hints:
        check_keys(path, data, report)
    if _PAIR.search(data):
        data = _without_surrogates(data, path)
    try:
        return Result(_Composer(path, data, report, stream).compose(), not report.failed)
    except YAMLError as error:
        from agentv.authoring.source.yaml_errors import yaml_error  # imported only for invalid files

        report.add(yaml_error(path, data, error))
    except _RefusedError as refused:
        from agentv.authoring.source.yaml_errors import hint_at

        report.error(refused.code, refused.at, str(refused), hint=hint_at(data, span_of(refused.at)))
    return Result(None, valid=False)


BREAKS = {"\x85": "U+0085", "\u2028": "U+2028", "\u2029": "U+2029"}
"""Characters that end a line in libyaml, which follows YAML 1.1, but not in YAML 1.2 or in editors."""

_BREAK = lazy_pattern("|".join(BREAKS).encode())
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def unreadable(path: str, data: bytes) -> Diagnostic | None:
    """An error if the bytes are not UTF-8 or have a line break that only libyaml recognizes; otherwise None."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        span = span_at(path, data, error.start)
        hint = "this is UTF-16; save it as UTF-8" if data.startswith(_UTF_16) else None
        return Diagnostic("not-utf-8", "not UTF-8: the file cannot be read as text", span, hint=hint)
    found = None if data.isascii() else _BREAK.search(data)
    if found is None:
        return None
    name = BREAKS[found[0].decode()]
    message = f"the line separator {name} would be read as a line break"
    hint = f'in double quotes, write it as "\\u{name[2:]}"'
    return Diagnostic("bad-yaml", message, span_at(path, data, found.start()), hint=hint)


_PAIR = re.compile(rb"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def _without_surrogates(data: bytes, path: str) -> bytes:
    """Replace JSON's surrogate-pair escapes, which YAML does not have, by YAML's escapes of the whole character.

    The data is changed only if the parser stops at such an escape, and only in double quotes: elsewhere it is text.
    """
    from yaml._yaml import CParser

    parser = CParser(_Stream(data, path))
    try:
        while not isinstance(parser.get_event(), StreamEndEvent):
            pass
    except YAMLError as error:
        return _QUOTED.sub(_escaped_pairs, data) if "character escape" in str(error) else data
    return data


def _escaped_pairs(quoted: re.Match[bytes]) -> bytes:
    last_line = quoted[0].rpartition(b"\n")[2]
    return _PAIR.sub(_escaped_pair, quoted[0]) + b"  " * len(_PAIR.findall(last_line))  # keeps the columns that follow


def _escaped_pair(pair: re.Match[bytes]) -> bytes:
    return b"\\U%08x" % ord(bytes.fromhex((pair[1] + pair[2]).decode()).decode("utf-16-be"))


def read_shared(path: str, text: str, report: Report) -> Node | None:
    """Read a project file that many suites share, like `read_yaml`. A file is parsed again only if its text changes."""
    data = text.encode()
    if report.hints and unreadable(path, data) is None:
        check_keys(path, data, report)
    root, found = _read_once(path, text)
    for one in found:
        report.add(one)
    return root


@lru_cache(maxsize=64)
def _read_once(path: str, text: str) -> tuple[Node | None, tuple[Diagnostic, ...]]:
    report = Report()
    return read_yaml(path, text.encode(), report).value, report.diagnostics


class _RefusedError(Exception):
    """The file breaks a limit or rule of ours, so reading stops."""

    def __init__(self, code: str, at: Any, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.at = at


class _Open(Struct, eq=False):
    """A collection whose end event was not read yet."""

    at: Any
    items: Any
    keys: dict[str, Any] | None
    key: str | None = None
    merges: list[tuple[Any, Node]] | None = None
    merge_at: Any = None
    of_cases: bool = False
    sink: Sink | None = None
    pending: Node | None = None
    size: int = 1
    depth: int = 1
    duplicates: list[Any] | None = None


class _Composer:
    def __init__(self, path: str, data: bytes, report: Report, stream: tuple[frozenset[str], Begin] | None) -> None:
        from yaml._yaml import CParser

        self._next: Callable[[], Any] = CParser(_Stream(data, path)).get_event
        self._path = path
        self._data = data
        self._report = report
        self._stream = stream
        self._anchors: dict[str, tuple[Node, int, int]] = {}
        self._size = 0
        self._strings: dict[str, str] = {}

    def compose(self) -> Node | None:
        """The root of the only document, or None if the file is empty. A second document is an error."""
        root: Node | None = None
        while (event := self._next()) is not None:
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    raise _RefusedError(
                        "several-documents", event, "a file must contain one document; a second one starts here"
                    )
                root = self._document()
        return root

    def _document(self) -> Node:  # noqa: C901, PLR0912  # calling a function per branch is too slow
        """Compose one document: the hot loop, with one iteration per event."""
        stack: list[_Open] = []
        top: _Open | None = None
        count, limit = 0, NODE_LIMIT if self._stream is not None else sys.maxsize
        while True:
            event = self._next()
            kind = type(event)
            count += 1
            if count > limit:
                raise _RefusedError("too-large", event, f"more than {limit:,} values in one case, or outside the cases")
            if kind is ScalarEvent:
                if top is not None and top.keys is not None and top.key is None:
                    self._key(top, event)
                    continue
                node: Node = self._scalar(event)
                size = 1
                if event.anchor is not None:
                    self._anchors[event.anchor] = (node, 1, 0)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                self._refuse_key(top, event)
                opened = _Open(event, {}, {}) if kind is MappingStartEvent else _Open(event, [], None)
                self._begin(opened, stack)
                stack.append(opened)
                top = opened
                continue
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                closed = stack.pop()
                node, size = self._close(closed), closed.size
                top = stack[-1] if stack else None
                if top is not None and top.depth <= closed.depth:
                    top.depth = closed.depth + 1
            elif kind is AliasEvent:
                self._refuse_key(top, event)
                node, size = self._alias(event, stack)
            else:
                raise _RefusedError("bad-yaml", event, "this document is empty")
            if top is None:
                return self._relocated(node)
            top.size += size
            if top.keys is None:
                if top.sink is None:
                    top.items.append(node)
                else:
                    self._emit(top, node)
                if top.of_cases:
                    count = 0
            elif top.merges is None:
                top.items[top.key] = node
                top.key = None
            else:
                self._value(top, node)

    def _relocated(self, root: Node) -> Node:
        """The root, with the place of an empty one corrected: libyaml puts it below a last line without a line end."""
        if isinstance(root, Scalar) and not root.text and span_of(root.at).line > 1:
            root.at = span_at(self._path, self._data, len(self._data))
        return root

    def _emit(self, top: _Open, node: Node | None) -> None:
        """Pass the previous item to the sink. The latest one waits, as a syntax error may have cut it short."""
        if top.pending is not None and top.sink is not None:
            top.sink(top.pending)
        top.pending = node

    def _begin(self, opened: _Open, stack: list[_Open]) -> None:
        event = opened.at
        if len(stack) >= DEPTH_LIMIT:
            raise _RefusedError("too-deep", event, f"nested more than {DEPTH_LIMIT} levels deep")
        if event.tag not in (LISTS if opened.keys is None else MAPPINGS):
            self._refuse_tag(event)
        root = stack[0] if len(stack) == 1 else None
        # not streamed after a `<<`, as the merged keys are known only when the mapping ends
        opened.of_cases = bool(self._stream and opened.keys is None and root and root.key in self._stream[0])
        if self._stream and opened.of_cases and root and not root.merges:
            opened.sink = self._stream[1](MapNode(root.items, root.keys or {}, root.at))

    def _refuse_tag(self, event: Any) -> None:
        self._report.error("unknown-tag", event, f"the tag {shorthand(event.tag)} is not supported")

    def _refuse_key(self, top: _Open | None, event: Any) -> None:
        if top is not None and top.keys is not None and top.key is None:
            found = "an alias" if isinstance(event, AliasEvent) else "a list or mapping"
            raise _RefusedError("bad-key", event, f"a key must be text, found {found}")

    def _key(self, top: _Open, event: Any) -> None:
        key = event.value
        key = self._strings.setdefault(key, key)  # the same few keys occur thousands of times
        if event.tag not in KEYS:
            self._refuse_tag(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = (Scalar(key, key, event), 1, 0)
        if key == "<<" and event.implicit[0]:
            top.merges = top.merges if top.merges is not None else []
            top.merge_at = event
        elif top.keys is not None:
            first = top.keys.get(key)
            if first is not None:
                top.duplicates = [*(top.duplicates or ()), (first, event)]
            top.keys[key] = event
        top.key = key

    def _value(self, top: _Open, node: Node) -> None:
        """Add a value to a mapping. A value under `<<` is merged when the mapping ends."""
        key = top.key
        top.key = None
        if key == "<<" and top.merges is not None and key not in (top.keys or ()):
            top.merges.append((top.merge_at, node))
        else:
            top.items[key] = node

    def _close(self, closed: _Open) -> Node:
        node: Node
        if closed.keys is None:
            self._emit(closed, None)
            node = ListNode(closed.items, closed.at)
        else:
            if closed.merges:
                for at, merged in closed.merges:
                    for source in merged.items if isinstance(merged, ListNode) else [merged]:
                        if not isinstance(source, MapNode):
                            self._report.error("bad-merge", at, f"'<<' merges mappings, found {kind_of(source)}")
                            break
                        for key, value in source.items.items():
                            closed.items.setdefault(key, value)
                            if closed.keys is not None:
                                closed.keys.setdefault(key, source.keys[key])
            if closed.duplicates:
                first, event = closed.duplicates[0]
                place, here = span_of(first), span_of(event)
                where = f"line {place.line}" if place.line != here.line else f"column {place.column}"
                message = f"'{event.value}' appears twice in one mapping; the first is at {where}"
                notes = [f"again '{other.value}' at line {span_of(other).line}" for _, other in closed.duplicates[1:]]
                dash = place.line != here.line and (notes or event.value == "id")
                hint = "start a new list entry with '- '" if dash else None
                self._report.error("duplicate-key", event, message, hint=hint, notes=notes)
            node = MapNode(closed.items, closed.keys, closed.at)
        if closed.at.anchor is not None:
            self._anchors[closed.at.anchor] = (node, closed.size, closed.depth)
        return node

    def _alias(self, event: Any, stack: list[_Open]) -> tuple[Node, int]:
        found = self._anchors.get(event.anchor)
        if found is None:
            message = f"the alias *{event.anchor} has no anchor: no &{event.anchor} before it"
            raise _RefusedError("bad-yaml", event, message)
        node, size, depth = found
        self._size += size
        if self._size > SIZE_LIMIT:
            raise _RefusedError("too-large", event, f"aliases expand to more than {SIZE_LIMIT:,} values")
        if len(stack) + depth > DEPTH_LIMIT:
            raise _RefusedError("too-deep", event, f"nested more than {DEPTH_LIMIT} levels deep by this alias")
        if stack and depth >= stack[-1].depth:
            stack[-1].depth = depth + 1
        return node, size

    def _scalar(self, event: Any) -> Scalar:
        text: str = event.value
        if event.tag is not None:
            read = TAGGED.get(event.tag)
            if read is None:
                self._refuse_tag(event)
                return Scalar(text, text, event)
            try:
                return Scalar(read(text), text, event)
            except ValueError:
                self._report.error("bad-value", event, f"'{text}' does not match its tag {shorthand(event.tag)}")
                return Scalar(text, text, event)
        if event.implicit[0] and (not text or text[0] in SPECIAL):
            return Scalar(resolve(text), text, event)
        return Scalar(text, text, event)
