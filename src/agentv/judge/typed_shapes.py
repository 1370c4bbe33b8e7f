"""Verdicts of the types beside `llm-rubric`: how each is read, and what it must look like (SPEC sections 7.2 and 9).

None of them holds a score. A judge picks a category, says yes or no, or does so for each line of a list, and the score
is computed from that: a judge may be talked into a number, and then nothing would show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from agentv.judge.delimiter import CONFIRM
from agentv.judge.shapes import SHAPES, ReadVerdict, UnreadableError, VerdictShape, _rows, _shown, _text, flagged
from agentv.model.run.grade import Check, weighted_mean
from agentv.model.run.rubric import Rubric, RubricMode
from agentv.model.values.values import Json, JsonObject

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
    **SHAPES,
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
"""Every mode of a rubric with the shape of its verdicts: those of `llm-rubric`, and those of the types beside it."""

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
            keys = _freeform()
        case "checklist":
            keys = _items(rubric, "satisfied", YES_OR_NO)
        case "score-ranges":
            keys = _items(rubric, "score", _POINTS)
        case "scale":
            return None
        case mode:
            keys = TYPED_KEYS[mode]
    return closed({**keys, CONFIRM: _WORD})


def _freeform() -> JsonObject:
    check = closed({"text": TEXT, "passed": YES_OR_NO, "evidence": _TEXT_OR_NULL})
    return {"score": _SHARE, "reason": _TEXT_OR_NULL, "assertions": _or_null({"type": "array", "items": check})}


def _items(rubric: Rubric, key: str, value: JsonObject) -> JsonObject:
    check = closed({"id": _one_of(item.id for item in rubric.items), key: value, "reasoning": _TEXT_OR_NULL})
    return {"checks": {"type": "array", "items": check}, "overall_reasoning": _TEXT_OR_NULL}


def _one_of(names: Iterable[str]) -> JsonObject:
    listed: list[Json] = list(names)
    return {"type": "string", "enum": listed} if len(listed) <= _MOST_NAMES else TEXT
