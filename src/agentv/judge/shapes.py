"""The shapes in which a judge may put its verdict, and how each is read, strictly (SPEC sections 7.2 and 9).

Types beside `llm-rubric` hold no score. A judge picks a category, says yes or no, or does so for each line of a list,
and the score is computed from that: a judge may be talked into a number, and then nothing would show it.
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
    value = row["score"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UnreadableError(f"'score' must be a number from 0 to 1, found {_shown(value)}")
    score = float(value)
    for key in ("pass", "passed"):  # as promptfoo's judges give too; what says both yes and no says nothing
        given = row.get(key)
        if given is not None and not isinstance(given, bool):
            raise UnreadableError(f"'{key}' must be true or false, found {_shown(given)}")
        if (given is False and reaches(score, RUBRIC_MARK)) or (given is True and reaches(1 - RUBRIC_MARK, score)):
            raise UnreadableError(f"'{key}' is {str(given).lower()} beside a score of {score:g}")
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


CATEGORIES: Mapping[str, str] = {
    "A": "the answer is a subset of the reference, and consistent with it",
    "B": "the answer is a superset of the reference, and consistent with it",
    "C": "the answer says the same as the reference",
    "D": "the answer disagrees with the reference",
    "E": "the answer differs from the reference, but not in its facts",
}
"""What `factuality` chooses from. Source: openai/evals, `modelgraded/fact.yaml`, as promptfoo has it."""


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
    """A list that the judge itself makes of the answer; a line that stands twice counts once."""
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
    """A list that the judge was given: just its lines, each once."""
    answers = flagged(row, rubric.items, key, flag)
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
"""Every mode of a rubric with the shape of its verdicts; that of a scale is a line of text: see `read_scale`."""

TEXT: JsonObject = {"type": "string"}
YES_OR_NO: JsonObject = {"type": "boolean"}


def _or_null(schema: JsonObject) -> JsonObject:
    # not `type: [.., "null"]`: the SDK of anthropic takes a single type only
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT_OR_NULL = _or_null(TEXT)


def _list_of(name: str, flag: str) -> JsonObject:
    keys: JsonObject = {name: TEXT, flag: YES_OR_NO, "reasoning": _TEXT_OR_NULL}
    return {"type": "array", "items": closed(keys)}


def closed(keys: JsonObject) -> JsonObject:
    """Schema of an object with just these keys."""
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
"""Names that are listed; more of them, and the providers refuse the schema."""

_POINTS: JsonObject = {"type": "integer", "description": "whole points from 0 to 10"}
_WORD: JsonObject = {"type": "string", "description": "the word that the question asks for"}
_SHARE: JsonObject = {"type": "number", "description": "from 0 to 1"}


def schema_of(rubric: Rubric) -> JsonObject | None:
    """What a verdict must look like; None in scale mode, where it is a line of text.

    The word that makes a verdict the judge's stands in the question alone: a schema that held it would be another one
    for each call, and would write the word for whoever repeats what an answer says.
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
