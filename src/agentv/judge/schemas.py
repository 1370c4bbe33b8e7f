"""The shapes of verdicts as JSON Schemas, in the strict form that model APIs take.

That form is the least that they all know: every object closed, every key required, and no bounds on numbers or
lengths, which some of them refuse. A key that may be left out may be null. `shapes` reads more strictly than this.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentv.judge.delimiter import CONFIRM
from agentv.judge.typed_shapes import TEXT, YES_OR_NO, closed, typed_keys
from agentv.model.run.rubric import Rubric
from agentv.model.values.values import Json, JsonObject

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
            keys = typed_keys(mode)
    return closed({**keys, CONFIRM: _WORD})


def _freeform() -> JsonObject:
    check = closed({"text": TEXT, "passed": YES_OR_NO, "evidence": _or_null(TEXT)})
    return {"score": _SHARE, "reason": _or_null(TEXT), "assertions": _or_null({"type": "array", "items": check})}


def _items(rubric: Rubric, key: str, value: JsonObject) -> JsonObject:
    check = closed({"id": _one_of(item.id for item in rubric.items), key: value, "reasoning": _or_null(TEXT)})
    return {"checks": {"type": "array", "items": check}, "overall_reasoning": _or_null(TEXT)}


def _or_null(schema: JsonObject) -> JsonObject:
    # not `type: [.., "null"]`: the SDK of anthropic takes a single type only
    return {"anyOf": [schema, {"type": "null"}]}


def _one_of(names: Iterable[str]) -> JsonObject:
    listed: list[Json] = list(names)
    return {"type": "string", "enum": listed} if len(listed) <= _MOST_NAMES else TEXT
