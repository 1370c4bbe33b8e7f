"""The shapes that a judge's verdict may have, and a strict reader for each (SPEC sections 7.2 and 9).

Verdicts of types other than `llm-rubric` have no score. The judge picks a category, says yes or no, or does so for each
line of a list, and the score is computed from that: an answer could talk a judge into a number without leaving a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from agentv.judge.material import CONFIRM
from agentv.model.run.grade import Check, reaches, weighted_mean
from agentv.model.run.rubric import RUBRIC_MARK, Rubric, RubricItem, RubricMode
from agentv.model.values.formatting import shorten
from agentv.model.values.values import EMPTY, Json, JsonObject

T = TypeVar("T")

MAX_POINTS = 10
"""Maximum points of an item with score ranges."""


class UnreadableError(Exception):
    """A reply is not a verdict. The message says why, as a clause without a full stop."""


@dataclass(frozen=True, slots=True)
class ReadVerdict:
    """A parsed verdict.

    Attributes:
        score: 0..1.
        satisfied: whether all required items are met; None in modes without items.
        stance: the deciding values; two verdicts with equal ones agree.
        passed: on a scale, whether the points reach the threshold; None if the score decides.
        details: further details for the grade.
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
    """The shape of one mode's verdicts: the key that tells them from other JSON objects, and their reader.

    Attributes:
        fields: the deciding fields of each object under the key; empty if the value of the key itself decides.

    Raises (`read`):
        UnreadableError: the object is not of this shape.
    """

    key: str
    read: Callable[[JsonObject, Rubric], ReadVerdict]
    fields: tuple[str, ...] = ()

    def stance_in(self, row: JsonObject) -> JsonObject:
        """Return the deciding part of a verdict, without its reasons."""
        value = row[self.key]
        lines = value if isinstance(value, list) else []
        lines_of_fields = [
            {name: line[name] for name in self.fields if name in line} for line in lines if isinstance(line, dict)
        ]
        return {self.key: lines_of_fields or value}


def _freeform(row: JsonObject, _rubric: Rubric) -> ReadVerdict:
    value = row["score"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UnreadableError(f"'score' must be a number from 0 to 1, found {_shown(value)}")
    score = float(value)
    for key in ("pass", "passed"):  # promptfoo's judges give these too; a contradiction is not a verdict
        given = row.get(key)
        if given is not None and not isinstance(given, bool):
            raise UnreadableError(f"'{key}' must be true or false, found {_shown(given)}")
        if (given is False and reaches(score, RUBRIC_MARK)) or (given is True and reaches(1 - RUBRIC_MARK, score)):
            raise UnreadableError(f"'{key}' is {str(given).lower()} beside a score of {score:g}")
    checks = (*_assertions(row), *_notes(row, "hits", passed=True), *_notes(row, "misses", passed=False))
    return ReadVerdict(score, checks, _text(row, "reason") or _text(row, "reasoning"), score)


def _checklist(row: JsonObject, rubric: Rubric) -> ReadVerdict:
    answers = _flags(row, rubric.items, "checks", "satisfied")
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
        score=weighted_mean((item.weight, points[item.id] / MAX_POINTS) for item in rubric.items),
        checks=tuple(_ranged(item, *answers[item.id]) for item in rubric.items),
        reason=_text(row, "overall_reasoning"),
        stance=tuple(points.values()),
        satisfied=all(item.min_score is None or points[item.id] >= item.min_score for item in rubric.items),
        details={"points": points},
    )


def _ranged(item: RubricItem, points: int, reasoning: str | None) -> Check:
    """Return the check of an item with score ranges; it passes by its own threshold, or else by that of rubrics."""
    threshold = RUBRIC_MARK * MAX_POINTS if item.min_score is None else item.min_score
    earned = next((text for low, high, text in item.score_ranges if low <= points <= high), "")
    evidence = f"{points} of {MAX_POINTS}" + (f" ({earned})" if earned else "")
    return Check(item.outcome or item.id, points >= threshold, f"{evidence}: {reasoning}" if reasoning else evidence)


def _assertions(row: JsonObject) -> Iterator[Check]:
    for line in _rows(row, "assertions"):
        text, passed = _text(line, "text"), line.get("passed")
        if text is None or not isinstance(passed, bool):
            raise UnreadableError("each of 'assertions' must have a 'text', and a 'passed' that is true or false")
        yield Check(text, passed, _text(line, "evidence"))


def _notes(row: JsonObject, key: str, *, passed: bool) -> Iterator[Check]:
    """Yield a check for each sentence of AgentV's older lists `hits` and `misses`."""
    notes = row.get(key)
    if notes is None:
        return
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise UnreadableError(f"'{key}' must be a list of texts, found {_shown(notes)}")
    for note in notes:
        if note.strip():
            yield Check(without_surrogates(note), passed)


def _points(value: Json) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_POINTS:
        wanted = f"a whole number from 0 to {MAX_POINTS}"
        raise UnreadableError(f"each of 'checks' must have a 'score', {wanted}, found {_shown(value)}")
    return value


def _flags(row: JsonObject, items: tuple[RubricItem, ...], key: str, name: str) -> dict[str, tuple[bool, str | None]]:
    """Return the answers as `_answers` does, for values that are true or false."""

    def read(value: Json) -> bool:
        if not isinstance(value, bool):
            raise UnreadableError(f"each of '{key}' must have an 'id', and a '{name}' that is true or false")
        return value

    return _answers(row, items, key, name, read)


def _answers(
    row: JsonObject, items: tuple[RubricItem, ...], lines: str, key: str, read: Callable[[Json], T]
) -> dict[str, tuple[T, str | None]]:
    """Return the judge's answer to each item: id → (value under `key`, reasoning), for exactly the rubric's ids."""
    answers: dict[str, tuple[T, str | None]] = {}
    for line in _rows(row, lines):
        found, value = line.get("id"), read(line.get(key))
        identity = (
            str(found) if isinstance(found, int) and not isinstance(found, bool) else found
        )  # models may write numbers
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
    return without_surrogates(text) if text.strip() else None


def without_surrogates(text: str) -> str:
    r"""Return the text without lone surrogates, such as JSON's `\ud800`, which no file can hold."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _shown(value: Json) -> str:
    return shorten(repr(value), 60)


CATEGORIES: Mapping[str, str] = {
    "A": "the answer is a subset of the reference, and consistent with it",
    "B": "the answer is a superset of the reference, and consistent with it",
    "C": "the answer says the same as the reference",
    "D": "the answer disagrees with the reference",
    "E": "the answer differs from the reference, but not in its facts",
}
"""Choices of `factuality`. Source: openai/evals, `modelgraded/fact.yaml`, as used by promptfoo."""


def _category(row: JsonObject, rubric: Rubric) -> ReadVerdict:
    found = row["category"]
    letter = found.strip() if isinstance(found, str) else ""
    if letter not in CATEGORIES:
        raise UnreadableError(f"'category' must be one of {', '.join(CATEGORIES)}, found {_shown(found)}")
    score, reason = dict(rubric.category_scores)[letter], _text(row, "reason")
    return ReadVerdict(score, (Check(f"{letter}: {CATEGORIES[letter]}", score > 0, reason),), reason, letter)


def _yes_or_no(key: str, row: JsonObject, rubric: Rubric) -> ReadVerdict:
    satisfied, reason = row[key], _text(row, "reason")
    if not isinstance(satisfied, bool):
        raise UnreadableError(f"'{key}' must be true or false, found {_shown(satisfied)}")
    return ReadVerdict(float(satisfied), (Check(rubric.text, satisfied, reason),), reason, satisfied)


def _listed(key: str, name: str, flag: str, row: JsonObject, _rubric: Rubric) -> ReadVerdict:
    """Read a list that the judge itself made of the answer; repeated lines count once."""
    answers: dict[str, Check] = {}
    for line in _rows(row, key):
        text, satisfied = _text(line, name), line.get(flag)
        if text is None or not isinstance(satisfied, bool):
            raise UnreadableError(f"each of '{key}' must have a '{name}', and a '{flag}' that is true or false")
        same = " ".join(text.split()).casefold()
        if answers.setdefault(same, Check(text, satisfied, _text(line, "reasoning"))).passed is not satisfied:
            raise UnreadableError(f"it calls one of '{key}' both {flag} and not: {_shown(text)}")
    if not answers:
        raise UnreadableError(f"'{key}' lists nothing of the answer")
    return _share(tuple(answers.values()), flag, tuple(sorted((same, check.passed) for same, check in answers.items())))


def _numbered(key: str, flag: str, row: JsonObject, rubric: Rubric) -> ReadVerdict:
    """Read the judge's answers to a list that it was given: exactly one for each line."""
    answers = _flags(row, rubric.items, key, flag)
    checks = tuple(Check(item.outcome, *answers[item.id]) for item in rubric.items)
    return _share(checks, flag, tuple(check.passed for check in checks))


def _share(checks: tuple[Check, ...], flag: str, stance: object) -> ReadVerdict:
    passed = sum(check.passed for check in checks)
    score = weighted_mean((1.0, float(check.passed)) for check in checks)
    return ReadVerdict(score, checks, f"{passed} of {len(checks)} {flag}", stance)


MODES: Mapping[RubricMode, VerdictShape] = {
    "freeform": VerdictShape("score", _freeform),
    "checklist": VerdictShape("checks", _checklist, ("id", "satisfied")),
    "score-ranges": VerdictShape("checks", _score_ranges, ("id", "score")),
    "aggregate": VerdictShape("score", _freeform),
    "factuality": VerdictShape("category", _category),
    "closed-qa": VerdictShape("criterion_met", partial(_yes_or_no, "criterion_met")),
    "answer-relevance": VerdictShape(
        "statements", partial(_listed, "statements", "statement", "relevant"), ("relevant",)
    ),
    "context-faithfulness": VerdictShape("claims", partial(_listed, "claims", "claim", "supported"), ("supported",)),
    "context-recall": VerdictShape("statements", partial(_numbered, "statements", "attributed"), ("id", "attributed")),
    "context-relevance": VerdictShape("sentences", partial(_numbered, "sentences", "relevant"), ("id", "relevant")),
    "goal-success": VerdictShape("goal_achieved", partial(_yes_or_no, "goal_achieved")),
}
"""Mode → shape of its verdicts, except `scale`, whose verdict is a line of text (`read_scale`)."""

TEXT: JsonObject = {"type": "string"}
YES_OR_NO: JsonObject = {"type": "boolean"}


def _or_null(schema: JsonObject) -> JsonObject:
    # not `type: [.., "null"]`: Anthropic's SDK accepts only a single type
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT_OR_NULL = _or_null(TEXT)


def _list_of(name: str, flag: str) -> JsonObject:
    keys: JsonObject = {name: TEXT, flag: YES_OR_NO, "reasoning": _TEXT_OR_NULL}
    return {"type": "array", "items": closed(keys)}


def closed(keys: JsonObject) -> JsonObject:
    """Return the schema of an object with exactly these keys."""
    return {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}


TYPED_KEYS: Mapping[RubricMode, Mapping[str, Json]] = {
    "factuality": {"reason": TEXT, "category": {"type": "string", "enum": list(CATEGORIES)}},
    "closed-qa": {"reason": TEXT, "criterion_met": YES_OR_NO},
    "answer-relevance": {"statements": _list_of("statement", "relevant")},
    "context-faithfulness": {"claims": _list_of("claim", "supported")},
    "context-recall": {"statements": _list_of("id", "attributed"), "reason": _TEXT_OR_NULL},
    "context-relevance": {"sentences": _list_of("id", "relevant"), "reason": _TEXT_OR_NULL},
    "goal-success": {"reason": TEXT, "goal_achieved": YES_OR_NO},
}
"""Mode → the keys of its verdict, with their JSON Schemas in the strict form."""


_MOST_NAMES = 200
"""Maximum number of ids listed in a schema; providers refuse schemas with more."""

_POINTS: JsonObject = {"type": "integer", "description": "whole points from 0 to 10"}
_WORD: JsonObject = {"type": "string", "description": "the word that the question asks for"}
_SHARE: JsonObject = {"type": "number", "description": "from 0 to 1"}


def schema_of(rubric: Rubric) -> JsonObject | None:
    """Return the schema of a verdict; None in scale mode, where a verdict is a line of text.

    Only the question contains the confirmation word. In the schema, it would make the schema different for each call,
    and would confirm even a verdict that the judge merely repeats from an answer.
    """
    match rubric.mode:
        case "freeform" | "aggregate":
            check = closed({"text": TEXT, "passed": YES_OR_NO, "evidence": _TEXT_OR_NULL})
            checks = _or_null({"type": "array", "items": check})
            keys: Mapping[str, Json] = {"score": _SHARE, "reason": _TEXT_OR_NULL, "assertions": checks}
        case "checklist":
            keys = _items(rubric, "satisfied", YES_OR_NO)
        case "score-ranges":
            keys = _items(rubric, "score", _POINTS)
        case "scale":
            return None
        case mode:
            keys = TYPED_KEYS[mode]
    return closed({**keys, CONFIRM: _WORD})


def _items(rubric: Rubric, key: str, value: JsonObject) -> JsonObject:
    ids: list[Json] = [item.id for item in rubric.items]
    identity: JsonObject = {"type": "string", "enum": ids} if len(ids) <= _MOST_NAMES else TEXT
    check = closed({"id": identity, key: value, "reasoning": _TEXT_OR_NULL})
    return {"checks": {"type": "array", "items": check}, "overall_reasoning": _TEXT_OR_NULL}
