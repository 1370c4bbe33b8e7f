"""Fast path for JSON lines that differ from an earlier line only in some texts, as most lines of most files do.

A line is split into its strings and the parts between them. If both equal those of an earlier line, except for the
texts of `id`, `input`, `expected_output`, `vars`, `metadata` and assertions, its case is that of the earlier line with
the new texts. Only these texts are checked; the rest is known to be valid. Any other line is read in full.
"""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder, decode, encode
from msgspec.structs import replace

from agentv.authoring.cases.case_builder import CaseBuilder
from agentv.authoring.code.fingerprints import names_files
from agentv.authoring.fields.case_keys import GOVERNANCE
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.kinds import Read
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Scalar
from agentv.authoring.source.report import Report
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Case
from agentv.model.values.message import Message, Role
from agentv.model.values.values import Span
from agentv.registry.fields import DeclaredAssertion, options_of

MOST_PATTERNS = 64
"""Maximum number of lines that are remembered of one file."""

LONGEST = 100_000
"""Maximum length in bytes of a line that is remembered."""

_BACKSLASH, _QUOTE = b"\x00", b"\x01"
"""Stand-ins for two escapes while a line is split; no line of JSON contains these bytes."""

_MESSAGES: dict[str, Role] = {"input": "user", "expected_output": "assistant"}
_MAPPINGS = ("vars", "metadata")
_FIXED = ("description", "tags", "threshold", "repeat", "timeout_s")
_KEYS = frozenset({"id", "assert", *_MESSAGES, *_MAPPINGS, *_FIXED})
"""Keys that a remembered line may have; none of them has an effect beyond its own case."""


class _Value(Struct, frozen=True):
    """The value of an assertion, which may differ in another line.

    Attributes:
        entry: index of the assertion.
        string: index of the string in the line.
        text: the string.
        read: reads the value.
        build: makes the assertion with another value.
        checks: the assertion validates itself.
    """

    entry: int
    string: int
    text: str
    read: Read
    build: Callable[..., Any]
    checks: bool


class _Pattern(Struct, frozen=True):
    """A line that was read, and the strings in which other lines may differ from it. A string is known by its index.

    Attributes:
        case: case of the line.
        strings: strings of the line.
        take_fixed: takes those strings of a line that must not differ.
        fixed_strings: these strings of this line.
        own: number of assertions that are in the line itself.
        pairs_of_a_type: pairs of assertions that contradict or repeat each other if they are equal.
        texts: key → its string.
        values: values of the assertions.
        pairs: `vars` or `metadata` → key → its string.
        written: the content that is hashed; every second part stands for a string.
        order: these strings.
    """

    case: Case
    strings: list[bytes]
    take_fixed: Callable[[list[bytes]], Any]
    fixed_strings: Any
    own: int
    pairs_of_a_type: tuple[tuple[int, int], ...]
    texts: Mapping[str, int]
    values: tuple[_Value, ...]
    pairs: Mapping[str, Mapping[str, int]]
    written: list[bytes] = []
    order: list[int] = []


class AlikeLines:
    """Remembers lines of one file, and derives the cases of similar lines from them.

    Args:
        path: path of the file.
        reading: the suite's `Reading`, which renders no placeholders.
        builder: builds the suite's cases.
    """

    def __init__(self, path: str, reading: Reading, builder: CaseBuilder) -> None:
        self._path = path
        self._report = Report()
        self._reading = reading.reporting_to(self._report)
        self._builder = builder
        self._patterns: dict[tuple[bytes, ...], list[_Pattern]] = {}
        self._count = 0
        self._has_matched = False

    def read(self, number: int, line: bytes) -> Case | None:
        """The case of a line; None if it must be read in full."""
        if not self._patterns:
            return None
        parts = _split(line)
        strings = parts[1::2]
        for pattern in self._patterns.get(tuple(parts[::2]), ()):
            if len(strings) == len(pattern.strings) and pattern.take_fixed(strings) == pattern.fixed_strings:
                self._has_matched = True
                try:
                    return self._of(pattern, strings, Span(self._path, number, 1, number, 2))
                except ValueError:  # not JSON, not UTF-8, or a lone surrogate
                    return None
        return None

    def learn(self, line: bytes, case: Case) -> None:
        """Remember a line that was read without diagnostics and contains no placeholder."""
        if self._count >= MOST_PATTERNS or len(line) > LONGEST or line.startswith(BOM_UTF8):
            if not self._has_matched:
                self._patterns.clear()  # no line has matched another so far
            return
        self._count += 1  # includes unusable lines, so that only some lines of a file are tried
        parts = _split(line)
        try:
            pattern = self._pattern(parts[::2], parts[1::2], case)
        except ValueError:  # a lone surrogate in a key
            pattern = None
        if pattern is not None:
            self._patterns.setdefault(tuple(parts[::2]), []).append(pattern)

    def _of(self, pattern: _Pattern, strings: list[bytes], at: Span) -> Case | None:
        """The case of a line that matches a pattern; None if there is something to report.

        Raises:
            ValueError: a string cannot be read.
        """
        quoted = [_quoted(strings[place]) for place in pattern.order]
        texts = dict(zip(pattern.order, map(_read_text, quoted), strict=True))
        given = self._fields(pattern, texts, at)
        if given is None:
            return None
        entries = given["assertions"]
        if any(entries[one].assertion == entries[other].assertion for one, other in pattern.pairs_of_a_type):
            return None
        written = pattern.written[:]
        # texts without escapes are hashed as they are in the line
        written[1::2] = [one if b"\\" not in one else encode(_read_text(one)) for one in quoted]
        return replace(pattern.case, sha256=self._builder.hash_of(b"".join(written)), span=at, **given)

    def _fields(self, pattern: _Pattern, texts: Mapping[int, str], at: Span) -> dict[str, Any] | None:
        """The fields of a case with other texts, except its hash; None if a text is invalid."""
        known, given = pattern.case, dict[str, Any]()
        for key, place in pattern.texts.items():
            text = texts[place]
            if not text.strip() or text.startswith("file://"):
                return None
            given[key] = text if key == "id" else (Message(_MESSAGES[key], text),)
        for key, places in pattern.pairs.items():
            given[key] = getattr(known, key) | {name: texts[place] for name, place in places.items()}
        entries = [replace(entry, span=at) for entry in known.assertions[: pattern.own]]
        entries += known.assertions[pattern.own :]
        for one in pattern.values:
            text = texts[one.string]
            if text == one.text:
                continue
            read = one.read(Scalar(text, text, at), self._reading, "value")
            if self._report.count:
                self._report = Report()
                self._reading = self._reading.reporting_to(self._report)
                return None
            assertion = one.build(value=text)
            if read != text or (one.checks and any(True for _ in assertion.validate())):
                return None
            entries[one.entry] = replace(entries[one.entry], assertion=assertion)
        given["assertions"] = tuple(entries)
        return given

    def _pattern(self, between: list[bytes], strings: list[bytes], case: Case) -> _Pattern | None:
        """The pattern of a line; None if the line is too complex for one.

        Raises:
            ValueError: a key contains a lone surrogate.
        """
        names = ("expected_output", "sha256", "span", *_MAPPINGS, *_FIXED)
        plain = replace(Case(case.id, case.input, case.assertions), **{name: getattr(case, name) for name in names})
        named = [_read_text(_quoted(one)) for one in strings]
        numbered = b"".join(b'%b"%d"' % (one, number) for number, one in enumerate(between[:-1])) + between[-1]
        found = _named(decode(numbered), named)
        items = found.get("assert", [])
        simple = found.keys() <= _KEYS and all(isinstance(one, dict) and "include" not in one for one in items)
        if plain != case or not simple or not all(map(_is_simple, case.assertions)):
            return None
        texts = {key: found[key] for key in ("id", *_MESSAGES) if _is_text(key, found.get(key), case, named)}
        values = [_value_of(number, item, case.assertions[number], named) for number, item in enumerate(items)]
        fixed = {GOVERNANCE, *self._builder.fixed}
        pairs = {
            key: {name: one for name, one in found[key].items() if isinstance(one, _Number) and name not in fixed}
            for key in _MAPPINGS
            if isinstance(found.get(key), dict)
        }
        inside = (place for one in pairs.values() for place in one.values())
        free = {*texts.values(), *inside, *(one.string for one in values if one is not None)}
        if len(free) == len(strings) or not free:
            return None
        take_fixed = itemgetter(*(number for number in range(len(strings)) if number not in free))
        types = [entry.type for entry in case.assertions]
        alike = tuple((one, other) for one, other in combinations(range(len(types)), 2) if types[one] == types[other])
        written = tuple(one for one in values if one is not None)
        made = _Pattern(case, strings, take_fixed, take_fixed(strings), len(items), alike, texts, written, pairs)
        return self._hashed(made, {place: named[place] for place in free})

    def _hashed(self, pattern: _Pattern, texts: Mapping[int, str]) -> _Pattern | None:
        """Add the hashed content, which is found by hashing marker texts. None if more than the texts would differ."""
        mark = f"text{os.urandom(8).hex()}"
        case = pattern.case
        assert case.span is not None  # noqa: S101  # it is in a file
        given = self._fields(pattern, {place: f"{mark}-{place}" for place in texts}, case.span)
        if given is None:
            return None
        other = replace(case, **given)
        parts = re.split(rb'"%b-(\d+)"' % mark.encode(), self._builder.written(other))
        order = [int(one) for one in parts[1::2]]
        if sorted(order) != sorted(texts):
            return None
        made = replace(pattern, written=parts, order=order)
        return made if self._of(made, pattern.strings, case.span) == case else None


class _Number(int):
    """The index of a string in its line."""


def _named(value: Any, names: list[str]) -> Any:
    """The content of a line with its own keys, and with indices in place of its texts."""
    if isinstance(value, dict):
        return {names[int(key)]: _named(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_named(one, names) for one in value]
    return _Number(value) if isinstance(value, str) else value


def _is_text(key: str, place: object, case: Case, named: list[str]) -> bool:
    """Whether the case has exactly the text of a key."""
    if not isinstance(place, _Number):
        return False
    text = named[place]
    return bool(getattr(case, key) == (text if key == "id" else (Message(_MESSAGES[key], text),)))


def _is_simple(entry: AssertionEntry) -> bool:
    """Whether an assertion depends only on the answer and on its own options, and these name no file or code."""
    one = entry.assertion
    if not isinstance(one, DeclaredAssertion) or not one.of_text_alone or hasattr(one, "identity"):
        return False
    return not (entry.plugin or entry.inner or names_files(one) or entry.settings.transform)


def _value_of(number: int, item: dict[str, Any], entry: AssertionEntry, named: list[str]) -> _Value | None:
    """The value of an assertion, if it is a string of the line; else None."""
    cls: Any = type(entry.assertion)
    schema = shape_of(cls)
    [lone] = item if len(item) == 1 and "type" not in item and cls.short == "value" else ["value"]
    place = item.get(lone)
    options = {name: getattr(entry.assertion, name) for name in options_of(cls)}
    if not isinstance(place, _Number) or options.pop("value", None) != named[place]:
        return None
    derived = any(name not in options_of(cls) for name in getattr(cls, "__dataclass_fields__", ()))
    read = schema.rules["value"].kind.read
    return None if derived else _Value(number, place, named[place], read, partial(cls, **options), schema.checks)


def _split(line: bytes) -> list[bytes]:
    """Split a line into its strings and the parts between them, alternately, with escaped characters replaced."""
    if _BACKSLASH in line or _QUOTE in line:
        return [line]
    if b"\\" in line:
        line = line.replace(b"\\\\", _BACKSLASH).replace(b'\\"', _QUOTE)
    return line.split(b'"')


def _quoted(string: bytes) -> bytes:
    """A string of a split line, as it is in the line."""
    return b'"%b"' % string.replace(_QUOTE, b'\\"').replace(_BACKSLASH, b"\\\\")


_read_text = Decoder(str).decode
