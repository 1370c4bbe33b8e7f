"""The shapes in which a judge may put its verdict, read strictly (SPEC section 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from agentv.model.run.grade import Check, reaches, weighted_mean
from agentv.model.run.rubric import RUBRIC_MARK, Rubric, RubricItem, RubricMode
from agentv.model.values.formatting import shorten
from agentv.model.values.values import EMPTY, Json, JsonObject

T = TypeVar("T")

MOST_POINTS = 10
"""Of an item with score ranges."""


class UnreadableError(Exception):
    """A reply is not a verdict. The message says what is wrong with it, as a clause without a full stop."""


@dataclass(frozen=True, slots=True)
class ReadVerdict:
    """Parsed verdict.

    Attributes:
        score: 0..1.
        satisfied: whether no item makes the grade fall; None in the modes without items.
        stance: what two verdicts must have in common to say the same.
        passed: scale: whether the points reach the threshold; None where the score decides.
        details: what else the grade tells of it.
    """

    score: float
    checks: tuple[Check, ...]
    reason: str | None
    stance: object
    satisfied: bool | None = None
    passed: bool | None = None
    details: JsonObject = field(default=EMPTY)


@dataclass(frozen=True, slots=True)
class VerdictShape:
    """The verdict of one mode: the key that distinguishes it from other JSON objects, and how it is read.

    Attributes:
        fields: of each object under the key, those that decide; empty where the value of the key itself decides.

    Raises (`read`):
        UnreadableError: the object is not of this shape.
    """

    key: str
    read: Callable[[JsonObject, Rubric], ReadVerdict]
    fields: tuple[str, ...] = ()

    def stance_in(self, row: JsonObject) -> JsonObject:
        """Deciding part of a verdict, without its reasons."""
        value = row[self.key]
        lines = value if isinstance(value, list) else []
        lines_of_fields = [
            {name: line[name] for name in self.fields if name in line} for line in lines if isinstance(line, dict)
        ]
        return {self.key: lines_of_fields or value}


def _freeform(row: JsonObject, _rubric: Rubric) -> ReadVerdict:
    score = _score(row["score"])
    _refuse_contradiction(row, score)
    checks = (*_assertions(row), *_notes(row, "hits", passed=True), *_notes(row, "misses", passed=False))
    return ReadVerdict(score, checks, _text(row, "reason") or _text(row, "reasoning"), score)


def _checklist(row: JsonObject, rubric: Rubric) -> ReadVerdict:
    answers = flagged(row, rubric.items, "checks", "satisfied")
    checks = tuple(Check(item.outcome, *answers[item.id]) for item in rubric.items)
    met = {item.id for item in rubric.items if answers[item.id][0]}
    satisfied = all(item.id in met for item in rubric.items if item.required)
    score = weighted_mean((item.weight, float(item.id in met)) for item in rubric.items)
    reason = _text(row, "overall_reasoning")
    return ReadVerdict(score, checks, reason, tuple(check.passed for check in checks), satisfied)


def _score_ranges(row: JsonObject, rubric: Rubric) -> ReadVerdict:
    answers = _answers(row, rubric.items, "checks", "score", _points)
    points = {item.id: answers[item.id][0] for item in rubric.items}
    return ReadVerdict(
        score=weighted_mean((item.weight, points[item.id] / MOST_POINTS) for item in rubric.items),
        checks=tuple(_ranged(item, *answers[item.id]) for item in rubric.items),
        reason=_text(row, "overall_reasoning"),
        stance=tuple(points.values()),
        satisfied=all(item.min_score is None or points[item.id] >= item.min_score for item in rubric.items),
        details={"points": points},
    )


def _ranged(item: RubricItem, points: int, reasoning: str | None) -> Check:
    """An item passes by its own mark, else by that of a rubric; the evidence says what the points stand for."""
    mark = RUBRIC_MARK * MOST_POINTS if item.min_score is None else item.min_score
    earned = next((text for low, high, text in item.score_ranges if low <= points <= high), "")
    evidence = f"{points} of {MOST_POINTS}" + (f" ({earned})" if earned else "")
    return Check(item.outcome or item.id, points >= mark, f"{evidence}: {reasoning}" if reasoning else evidence)


SHAPES: Mapping[RubricMode, VerdictShape] = {
    "freeform": VerdictShape("score", _freeform),
    "checklist": VerdictShape("checks", _checklist, ("id", "satisfied")),
    "score-ranges": VerdictShape("checks", _score_ranges, ("id", "score")),
    "aggregate": VerdictShape("score", _freeform),
}
"""The modes whose verdict is JSON. That of a scale is a line of text: see `scale`."""


def _score(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UnreadableError(f"'score' must be a number from 0 to 1, found {_shown(value)}")
    return float(value)


def _refuse_contradiction(row: JsonObject, score: float) -> None:
    # promptfoo's judges give `pass` too; a verdict that says both yes and no says nothing
    for key in ("pass", "passed"):
        given = row.get(key)
        if given is not None and not isinstance(given, bool):
            raise UnreadableError(f"'{key}' must be true or false, found {_shown(given)}")
        if (given is False and reaches(score, RUBRIC_MARK)) or (given is True and reaches(1 - RUBRIC_MARK, score)):
            raise UnreadableError(f"'{key}' is {str(given).lower()} beside a score of {score:g}")


def _assertions(row: JsonObject) -> Iterator[Check]:
    for line in _rows(row, "assertions"):
        text, passed = _text(line, "text"), line.get("passed")
        if text is None or not isinstance(passed, bool):
            raise UnreadableError("each of 'assertions' must have a 'text', and a 'passed' that is true or false")
        yield Check(text, passed, _text(line, "evidence"))


def _notes(row: JsonObject, key: str, *, passed: bool) -> Iterator[Check]:
    """AgentV's older `hits` and `misses`: lists of sentences."""
    notes = row.get(key)
    if notes is None:
        return
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise UnreadableError(f"'{key}' must be a list of texts, found {_shown(notes)}")
    for note in notes:
        if note.strip():
            yield Check(speakable(note), passed)


def _points(value: Json) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_POINTS:
        wanted = f"a whole number from 0 to {MOST_POINTS}"
        raise UnreadableError(f"each of 'checks' must have a 'score', {wanted}, found {_shown(value)}")
    return value


def flagged(row: JsonObject, items: tuple[RubricItem, ...], key: str, name: str) -> dict[str, tuple[bool, str | None]]:
    """As `_answers`, of values that are true or false."""

    def read(value: Json) -> bool:
        if not isinstance(value, bool):
            raise UnreadableError(f"each of '{key}' must have an 'id', and a '{name}' that is true or false")
        return value

    return _answers(row, items, key, name, read)


def _answers(
    row: JsonObject, items: tuple[RubricItem, ...], lines: str, key: str, read: Callable[[Json], T]
) -> dict[str, tuple[T, str | None]]:
    """What the judge says of each item: id → (what stands under `key`, reasoning), just the ids of the rubric."""
    answers: dict[str, tuple[T, str | None]] = {}
    for line in _rows(row, lines):
        found, value = line.get("id"), read(line.get(key))
        identity = str(found) if isinstance(found, int) and not isinstance(found, bool) else found  # as a model may
        if not isinstance(identity, str):
            raise UnreadableError(f"each of '{lines}' must have an 'id', found {_shown(identity)}")
        if answers.setdefault(identity, (value, _text(line, "reasoning")))[0] != value:
            raise UnreadableError(f"it has two results for the '{key}' of item {_shown(identity)}")
    known = {item.id for item in items}
    unknown = [identity for identity in answers if identity not in known]
    missing = [item.id for item in items if item.id not in answers]
    if unknown:
        raise UnreadableError(f"the rubric has no item {_shown(unknown[0])}")
    if missing:
        raise UnreadableError(f"it has no result for item {_shown(missing[0])}")
    return answers


def _rows(row: JsonObject, key: str) -> list[JsonObject]:
    rows = row.get(key)
    if rows is None:
        return []
    if not isinstance(rows, list) or not all(isinstance(one, dict) for one in rows):
        raise UnreadableError(f"'{key}' must be a list of objects, found {_shown(rows)}")
    return rows


def _text(row: JsonObject, key: str) -> str | None:
    text = row.get(key)
    if text is None:
        return None
    if not isinstance(text, str):
        raise UnreadableError(f"'{key}' must be text, found {_shown(text)}")
    return speakable(text) if text.strip() else None


def speakable(text: str) -> str:
    r"""The text without lone surrogates: JSON's `\ud800` is one, and no file can hold it."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _shown(value: Json) -> str:
    return shorten(repr(value), 60)
