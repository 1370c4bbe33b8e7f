"""The data family: `field-accuracy`, which can compare dates in many formats, and `json-match`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from math import floor
from typing import Annotated, Any, ClassVar, Literal

from agentv.assertions.comparing import TooManyEditsError, edits_between, first_differences, same, shown
from agentv.assertions.evidence import NO_OUTPUT, excerpt, listed
from agentv.matching.json_text import NotJson, UnsearchableError, json_in
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import TOLERANCE, Check, Grade, reaches, weighted_mean
from agentv.model.suite.suite import DEFAULT_THRESHOLD
from agentv.model.values.json_path import JsonPath, Missing, parse, read
from agentv.model.values.message import Message
from agentv.model.values.values import Json
from agentv.registry.fields import Between, Declared, DeclaredAssertion, Doc, Issue, LoadedJson, Nonempty, Text

DEFAULT_FORMATS = ("DD-MMM-YYYY", "MM/DD/YYYY", "DD/MM/YYYY", "MM-DD-YYYY", "DD-MM-YYYY")
"""Date formats to try in this order, before ISO 8601. 03/04/2025 is March 4, as in AgentV."""

_LONGEST_DATE = 64

_PARTS = {
    "YYYY": r"(?P<year>\d{4})",
    "MMMM": r"(?P<name>[^\W\d_]{3,9})\.?",
    "MMM": r"(?P<name>[^\W\d_]{3,9})\.?",
    "MM": r"(?P<month>\d{1,2})",
    "DD": r"(?P<day>\d{1,2})",
    "HH": r"\d{1,2}",
    "mm": r"\d{2}",
    "ss": r"\d{2}(?:\.\d{1,9})?",
    "Z": r"(?:Z|[+-]\d{2}:?\d{2})",
    "T": "T",
}
_PIECE = re.compile(r"YYYY|MMMM|MMM|MM|DD|HH|mm|ss|Z|T|[^A-Za-z]+|(?P<unknown>[A-Za-z]+)")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)


class FormatError(ValueError):
    """A date format is invalid."""


@lru_cache(maxsize=256)
def date_pattern(date_format: str) -> re.Pattern[str]:
    """Return the pattern for a date format made of YYYY, MM, DD, MMM (Jan), MMMM (January), HH, mm, ss and Z.

    Raises:
        FormatError: it contains another letter, or not exactly one day, one month and one year.
    """
    pattern = ""
    for piece in _PIECE.finditer(date_format):
        if piece["unknown"]:
            raise FormatError(f"unknown part '{piece['unknown']}' in a date format; known parts: {', '.join(_PARTS)}")
        pattern += _PARTS.get(piece[0], re.escape(piece[0]))
    named = sorted(re.findall(r"\?P<(\w+)>", pattern))
    if named not in (["day", "month", "year"], ["day", "name", "year"]):
        raise FormatError(f"the date format '{date_format}' must contain day, month and year exactly once")
    return re.compile(pattern, re.ASCII if "MMM" not in date_format else re.UNICODE)


def read_date(value: Json, formats: Iterable[str]) -> date | None:
    """Return the date in a text, by the first format that matches, else ISO 8601, or None. The time is ignored."""
    if not isinstance(value, str) or len(value) > _LONGEST_DATE:
        return None
    text = value.strip()
    for date_format in formats:
        found = date_pattern(date_format).fullmatch(text)
        day = _day(found.groupdict()) if found else None
        if day is not None:
            return day
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        return None


def _day(parts: dict[str, str]) -> date | None:
    if "name" in parts:  # prefixes of three letters or more, such as `Sept`, are months too
        word = parts["name"].casefold()
        month = next((place for place, name in enumerate(_MONTHS, 1) if name.startswith(word)), 0)
    else:
        month = int(parts["month"])
    try:
        return date(int(parts["year"]), month, int(parts["day"]))
    except ValueError:
        return None


Span = tuple[int, int]

LONGEST = 100_000
"""Maximum length, in characters, of a text in which the position of a value is determined."""

_SPACE = " \t\n\r"
_decode = json.JSONDecoder().raw_decode


def value_spans(text: str, path: JsonPath, parsed: Json) -> tuple[Span, ...]:
    """Return the span of the value at a path; empty if it is missing or ambiguous.

    Args:
        text: the answer. If it contains more than a JSON object, there is no span.
        path: path of the value, such as `a.b[0]`.
        parsed: the object parsed from the text.
    """
    wanted, stripped = read(path, parsed), text.strip(_SPACE)
    is_object = stripped.startswith("{") and stripped.endswith("}")
    if isinstance(wanted, Missing) or len(text) > LONGEST or not is_object:
        return ()
    try:
        begin = _after_space(text, 0)
        for step in path.steps:
            found = [at for key, at in _members(text, begin) if str(key) == str(step)]
            if len(found) != 1:  # a duplicate key, of which the last one counts, or a negative index
                return ()
            begin = found[0]
        value, end = _decode(text, begin)
    except (ValueError, IndexError, RecursionError):
        return ()
    return ((begin, end),) if value == wanted else ()


def _members(text: str, at: int) -> Iterator[tuple[str | int, int]]:
    """Yield the keys or indexes of the object or list at a position, each with the position of its value."""
    is_object, number = text[at] == "{", 0
    if text[at] not in "{[":
        return
    at = _after_space(text, at + 1)
    while text[at] not in "]}":
        key: Any = number
        if is_object:
            key, at = _decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # the colon
        yield key, at
        at = _after_space(text, _decode(text, at)[1])
        at = _after_space(text, at + 1) if text[at] == "," else at
        number += 1


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


_NUMBER = re.compile(r"[+-]?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?", re.ASCII)


def number_in(value: Json) -> Decimal | None:
    """Return the number that a value is or spells, or None for any other value, such as true or '12 EUR'."""
    if not isinstance(value, int | float | str):
        return None
    text = value.strip() if isinstance(value, str) else f"{value}"  # 'True' is not a number
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def within(expected: Decimal, found: Decimal, tolerance: float, *, relative: bool) -> bool:
    """Return whether a number differs by at most `tolerance`, inclusive; 1.1 differs from 1.0 by exactly 0.1.

    With `relative`, the tolerance is a share of the expected number, or absolute if that is 0.
    """
    allowed = Decimal(f"{tolerance}")
    if relative and expected:
        allowed *= abs(expected)
    return abs(found - expected) <= allowed


NO_REFERENCE = Grade.errored("no-reference", "the case has no expected_output with JSON to compare with")

Aggregation = Literal["weighted_average", "all_or_nothing"]
Match = Literal["exact", "date", "numeric_tolerance", "fuzzy"]


@dataclass(frozen=True, slots=True)
class Field(Declared):
    """One field that `field-accuracy` compares."""

    path: Annotated[Text, Nonempty(), Doc("path of the field: invoice.lines[0].amount")]
    match: Annotated[Match, Doc("how the two values are compared")] = "exact"
    required: Annotated[bool, Doc("true: a missing field is wrong; false: it is skipped")] = True
    weight: Annotated[float, Between(0), Doc("weight of the field in the score")] = 1.0
    tolerance: Annotated[float | None, Between(0), Doc("numeric_tolerance: maximum difference")] = None
    relative: Annotated[bool, Doc("numeric_tolerance: the tolerance is a share of the expected number")] = False
    formats: Annotated[tuple[Text, ...], Doc("date: formats to accept besides ISO 8601, such as DD-MMM-YYYY")] = ()
    threshold: Annotated[float | None, Between(0.01, 1), Doc("fuzzy: minimum similarity; 0.85")] = None

    def validate(self) -> Iterable[Issue]:
        """Report invalid paths and formats, and options that this match does not use."""
        try:
            _path(self.path)
        except ValueError as error:
            yield Issue(("path",), str(error), "bad-path")
        for place, date_format in enumerate(self.formats):
            try:
                date_pattern(date_format)
            except FormatError as error:
                yield Issue(("formats", place), str(error))
        for option, match in _ONLY_FOR.items():
            if self.match != match and getattr(self, option):
                yield Issue((option,), f"'{option}' requires match: {match}, found match: {self.match}")


_ONLY_FOR: dict[str, Match] = {
    "tolerance": "numeric_tolerance",
    "relative": "numeric_tolerance",
    "formats": "date",
    "threshold": "fuzzy",
}
"""Option → the only kind of match that uses it."""


@dataclass(frozen=True, slots=True)
class FieldAccuracy(DeclaredAssertion):
    """The fields of the answer's JSON match those of the expected output."""

    reads_json: ClassVar[bool] = True

    fields: Annotated[tuple[Field, ...], Nonempty(), Doc("the fields to compare")]
    aggregation: Annotated[Aggregation, Doc("how the fields are combined into the score")] = "weighted_average"

    short: ClassVar[str | None] = "fields"

    def label(self) -> str:
        """The first few paths."""
        return listed(tuple(field.path for field in self.fields))

    def validate(self) -> Iterable[Issue]:
        """Report fields whose weights sum to 0."""
        if self.fields and not any(field.weight for field in self.fields):
            yield Issue(("fields",), "every field has weight 0, so there is no score")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare every field, with one check per field. A weighted average passes at 0.8, as in AgentV."""
        if context.output is None:
            return NO_OUTPUT
        reference = reference_json(context.expected_output)
        if isinstance(reference, NotJson):
            return NO_REFERENCE
        try:
            answer = json_in(context.output, like=reference)
        except UnsearchableError as error:
            return _unsearchable(error)
        if isinstance(answer, NotJson):
            return Grade.of(False, "contains JSON with the fields", f"{answer.reason}: {excerpt(context.output, 120)}")
        try:
            return self._compare(answer, reference, context.output)
        except TooManyEditsError as error:
            return Grade.errored("too-long", f"a field could not be compared in time: {error}")

    def _compare(self, answer: Json, reference: Json, output: str) -> Grade:
        compared: list[tuple[float, Check]] = []
        for field in self.fields:
            expected, found = read(_path(field.path), reference), read(_path(field.path), answer)
            if isinstance(expected, Missing):
                if field.required:
                    message = f"the expected output has no field '{field.path}'; to skip it, set 'required: false'"
                    return Grade.errored("no-reference", message)
            elif not isinstance(found, Missing):
                wrong = _COMPARISONS[field.match](field, expected, found)
                spans = value_spans(output, _path(field.path), answer)
                check = Check(
                    f"{field.path} is {shown(expected)}", wrong is None, wrong or f"found {shown(found)}", spans
                )
                compared.append((field.weight, check))
            elif field.required:
                check = Check(f"{field.path} is {shown(expected)}", False, excerpt(found.message))
                compared.append((field.weight, check))
        checks = tuple(check for _, check in compared)
        if not any(weight for weight, _ in compared):
            return Grade.of(False, "has one of the fields", "the answer has none of them")
        if self.aggregation == "all_or_nothing":
            passed = all(check.passed for check in checks)
            return Grade(1.0 if passed else 0.0, passed, checks)
        score = weighted_mean((weight, float(check.passed)) for weight, check in compared)
        return Grade(score, reaches(score, DEFAULT_THRESHOLD), checks, needs=DEFAULT_THRESHOLD)


@dataclass(frozen=True, slots=True)
class JsonMatch(DeclaredAssertion):
    """The answer's JSON contains all of a value, or equals it."""

    reads_json: ClassVar[bool] = True

    value: Annotated[LoadedJson | None, Doc("the JSON, inline or a path; default: the expected output")] = None
    mode: Annotated[Literal["subset", "equal"], Doc("subset: objects may have more keys; equal: no more keys")] = (
        "subset"
    )

    def label(self) -> str:
        """The value to compare with."""
        if self.value is None:
            return "expected output"
        return self.value.path.rpartition("/")[2] if self.value.path else shown(self.value.value)

    def validate(self) -> Iterable[Issue]:
        """Report a value that every object contains."""
        if self.value is not None and self.value.value == {} and self.mode == "subset":
            yield Issue(("value",), "every object has all of {}, so this checks nothing", hint="add mode: equal")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare the values. Lists must match item by item in both modes."""
        if context.output is None:
            return NO_OUTPUT
        expected = self.value.value if self.value is not None else reference_json(context.expected_output)
        if isinstance(expected, NotJson):
            return NO_REFERENCE
        text = "contains all of the expected JSON" if self.mode == "subset" else "equals the expected JSON"
        try:
            answer = json_in(context.output, like=expected)
        except UnsearchableError as error:
            return _unsearchable(error)
        if isinstance(answer, NotJson):
            return Grade.of(False, text, f"{answer.reason}: {excerpt(context.output, 120)}")
        found = first_differences(expected, answer, subset=self.mode == "subset")
        return Grade.of(not found, text, excerpt("; ".join(found)) if found else shown(answer))


def _unsearchable(error: UnsearchableError) -> Grade:
    return Grade.errored("too-long", f"cannot tell which JSON value is the answer: it contains {error}")


def reference_json(messages: Sequence[Message]) -> Json | NotJson:
    """Return the JSON in the last assistant message of a reference answer that contains any, or why none exists."""
    for message in reversed(messages):
        if message.role == "assistant":
            content = message.content
            try:
                value = json_in(message.text) if isinstance(content, str | tuple) else content
            except UnsearchableError as error:
                value = NotJson(str(error))
            if not isinstance(value, NotJson):
                return value
    return NotJson("there is no reference answer")


_path = lru_cache(maxsize=1024)(parse)


def _numeric(field: Field, expected: Json, found: Json) -> str | None:
    wanted, number = number_in(expected), number_in(found)
    if wanted is None or number is None:
        return f"no number: {shown(found if number is None else expected)}"
    tolerance = field.tolerance or 0.0
    if within(wanted, number, tolerance, relative=field.relative):
        return None
    return f"found {shown(found)}, which differs by more than {tolerance:g}{' of it' if field.relative else ''}"


def _date(field: Field, expected: Json, found: Json) -> str | None:
    formats = field.formats or DEFAULT_FORMATS
    wanted, day = read_date(expected, formats), read_date(found, formats)
    if wanted is None or day is None:
        return f"no date: {shown(found if day is None else expected)}"
    return None if wanted == day else f"found {day.isoformat()}"


def _fuzzy(field: Field, expected: Json, found: Json) -> str | None:
    if not isinstance(expected, str) or not isinstance(found, str):
        return f"no text: {shown(expected if isinstance(found, str) else found)}"
    mark = field.threshold or 0.85
    one, other = _normalized(expected), _normalized(found)
    length = max(len(one), len(other))
    most = floor(length * (1 - mark) + TOLERANCE)
    return None if edits_between(one, other, most) is not None else f"found {shown(found)}, similarity below {mark:g}"


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())


_COMPARISONS: dict[Match, Callable[[Field, Json, Json], str | None]] = {
    "exact": lambda _field, expected, found: None if same(expected, found) else f"found {shown(found)}",
    "numeric_tolerance": _numeric,
    "date": _date,
    "fuzzy": _fuzzy,
}
"""Kind of match → function that returns what is wrong with a value, or None."""
