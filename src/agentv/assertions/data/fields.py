"""The data family: the JSON of an answer, compared field by field or as a whole (SPEC section 7.2).

`field-accuracy` follows AgentV's grader of that name. It differs where AgentV would call something right that it
cannot know: a required field that the reference lacks is an error here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from math import floor
from typing import Annotated, ClassVar, Literal

from agentv.assertions.data.dates import DEFAULT_FORMATS, FormatError, read_date, reader_of
from agentv.assertions.data.json_places import Span, value_spans
from agentv.assertions.edits import TooManyEditsError, edits_between
from agentv.assertions.evidence import NO_OUTPUT, excerpt, listed
from agentv.assertions.json_compare import differences, same, shown
from agentv.matching.json_text import NotJson, UnsearchableError, json_in
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import TOLERANCE, Check, Grade, reaches, weighted_mean
from agentv.model.suite.suite import DEFAULT_THRESHOLD
from agentv.model.values.json_path import Missing, parse, read
from agentv.model.values.message import Message
from agentv.model.values.values import Json
from agentv.registry.fields import Between, Declared, DeclaredAssertion, Doc, Issue, LoadedJson, Nonempty, Text

_NUMBER = re.compile(r"[+-]?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?", re.ASCII)


def number_in(value: Json) -> Decimal | None:
    """The number that a value is, or says as text; None for everything else, such as true or '12 EUR'."""
    if not isinstance(value, int | float | str):
        return None
    text = value.strip() if isinstance(value, str) else f"{value}"  # 'True' is no number
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def within(expected: Decimal, found: Decimal, tolerance: float, *, relative: bool) -> bool:
    """Whether a number is at most `tolerance` off, bounds included; 1.1 is just 0.1 off 1.0.

    With `relative`, the tolerance is a share of the expected number; where that is 0, it is absolute all the same.
    """
    allowed = Decimal(f"{tolerance}")
    if relative and expected:
        allowed *= abs(expected)
    return abs(found - expected) <= allowed


MOST_DIFFERENCES = 5
"""Maximum number of differences shown for one answer."""

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
        """Reports invalid paths and formats, and options that this match does not use."""
        try:
            _path(self.path)
        except ValueError as error:
            yield Issue(("path",), str(error), "bad-path")
        for place, spelled in enumerate(self.formats):
            try:
                reader_of(spelled)
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
"""Options → the only match that uses them."""


@dataclass(frozen=True, slots=True)
class FieldAccuracy(DeclaredAssertion):
    """The fields of the answer's JSON match those of the expected output."""

    reads_json: ClassVar[bool] = True

    fields: Annotated[tuple[Field, ...], Nonempty(), Doc("the fields to compare")]
    aggregation: Annotated[Aggregation, Doc("how the fields are combined into the score")] = "weighted_average"

    short: ClassVar[str | None] = "fields"

    def label(self) -> str:
        """The first of the paths."""
        return listed(tuple(field.path for field in self.fields))

    def validate(self) -> Iterable[Issue]:
        """Reports fields whose weights sum to 0."""
        if self.fields and not any(field.weight for field in self.fields):
            yield Issue(("fields",), "every field has weight 0, so there is no score")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare every field: a check per field. A weighted average passes at 0.8, as in AgentV."""
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
            elif not isinstance(found, Missing) or field.required:
                spans = value_spans(output, _path(field.path), answer)
                compared.append((field.weight, _field_check(field, expected, found, spans)))
        return self._combined(compared)

    def _combined(self, compared: Sequence[tuple[float, Check]]) -> Grade:
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
    """The answer's JSON contains everything of a value, or is equal to it."""

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
        """Reports a value that every object contains."""
        if self.value is not None and self.value.value == {} and self.mode == "subset":
            yield Issue(("value",), "every object has all of {}, so this checks nothing", hint="add mode: equal")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare; lists must match item by item in either mode."""
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
        found = tuple(islice(differences(expected, answer, subset=self.mode == "subset"), MOST_DIFFERENCES))
        return Grade.of(not found, text, excerpt("; ".join(found)) if found else shown(answer))


def _unsearchable(error: UnsearchableError) -> Grade:
    return Grade.errored("too-long", f"cannot tell which JSON value is the answer: it contains {error}")


def reference_json(messages: Sequence[Message]) -> Json | NotJson:
    """The JSON of a reference answer: that of its last assistant message that contains any."""
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


def _field_check(field: Field, expected: Json, found: Json | Missing, spans: tuple[Span, ...]) -> Check:
    text = f"{field.path} is {shown(expected)}"
    if isinstance(found, Missing):
        return Check(text, False, excerpt(found.message))
    wrong = _COMPARISONS[field.match](field, expected, found)
    return Check(text, wrong is None, wrong or f"found {shown(found)}", spans)


def _exact(_field: Field, expected: Json, found: Json) -> str | None:
    return None if same(expected, found) else f"found {shown(found)}"


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
    one, other = _equal_loosely(expected), _equal_loosely(found)
    length = max(len(one), len(other))
    most = floor(length * (1 - mark) + TOLERANCE)
    return None if edits_between(one, other, most) is not None else f"found {shown(found)}, similarity below {mark:g}"


def _equal_loosely(text: str) -> str:
    return " ".join(text.casefold().split())


_COMPARISONS: dict[Match, Callable[[Field, Json, Json], str | None]] = {
    "exact": _exact,
    "numeric_tolerance": _numeric,
    "date": _date,
    "fuzzy": _fuzzy,
}
"""Ways of matching → what is wrong with a value; None: nothing."""
