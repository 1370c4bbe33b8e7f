"""The JSON Schema of an exam, out of the declarations that it is read with (SPEC section 11)."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.authoring.cases.triggering import AuthoredQueries, AuthoredQuery
from agentv.authoring.dialects.eva.cases import AuthoredExam, AuthoredExamCase, AuthoredExamDefaults, AuthoredExamJudge
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.json_kinds import (
    ASSERTIONS,
    FREE_KEYS,
    NAME,
    TEXT,
    Schema,
    needed,
    object_of,
    properties_of,
    spelled_once,
    spellings_of,
)
from agentv.authoring.json_schema.entries import MESSAGES
from agentv.authoring.json_schema.targets import TARGET

_RUBRIC = "#/$defs/type.llm-rubric/properties/"
_JUDGE: Schema = {"if": {"type": "string"}, "then": NAME, "else": {"$ref": "#/$defs/judge"}}
_INPUT: Schema = {"type": ["string", "number", "boolean", "array", "object"]}
_TAGS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}, {"type": "object"}]}
_QUERIES: Schema = {"type": ["array", "null"], "items": {**TEXT, "pattern": r"\S"}}
_PAIRS: Schema = {"type": "array", "items": {"$ref": "#/$defs/query"}}

_JUDGE_VALUES: Mapping[str, Schema] = {
    "model": TARGET,
    **{key: {"$ref": f"{_RUBRIC}{key}"} for key in ("pass_threshold", "scale", "votes", "temperature")},
}
_DEFAULTS_VALUES: Mapping[str, Schema] = {"model": TARGET, "judge": _JUDGE}
_CASE_VALUES: Mapping[str, Schema] = {
    "name": {**TEXT, "pattern": r"\S"},
    "inputs": {"type": "object", "additionalProperties": _INPUT},
    "inputs_from": NAME,
    "assert_": {**ASSERTIONS, "minItems": 1},
    "rubric": NAME,
    "expected_output": {"anyOf": [MESSAGES, {"type": "null"}]},
    "judge": _JUDGE,
    "model": TARGET,
    "tags": _TAGS,
}
_TRIGGERING_VALUES: Mapping[str, Schema] = {
    "should_trigger": _QUERIES,
    "should_not_trigger": _QUERIES,
    "queries": {"if": {"type": "string"}, "then": NAME, "else": {"$ref": "#/$defs/queries"}},
}
_EXAM_VALUES: Mapping[str, Schema] = {
    "defaults": {"anyOf": [{"$ref": "#/$defs/defaults"}, {"type": "null"}]},
    "triggering": {
        "if": {"type": "string"},
        "then": NAME,
        "else": {"if": {"type": "array"}, "then": {"$ref": "#/$defs/queries"}, "else": {"$ref": "#/$defs/triggering"}},
    },
    "cases": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/case"}},
}


def exam_body() -> Schema:
    """The outermost mapping."""
    return {**_object(AuthoredExam, _EXAM_VALUES), "required": ["cases"]}


def exam_defs() -> dict[str, Schema]:
    """Definitions that it refers to, besides those of eval files."""
    case = _object(AuthoredExamCase, _CASE_VALUES)
    given = needed([["inputs", "inputs_from"], ["assert", "assertions", "rubric"]])
    return {
        "defaults": _object(AuthoredExamDefaults, _DEFAULTS_VALUES),
        "judge": {**_object(AuthoredExamJudge, _JUDGE_VALUES), "minProperties": 1},
        "case": {**case, "required": ["name"], **given},
        **triggering_defs(AuthoredQueries),
    }


def triggering_defs(cls: type) -> dict[str, Schema]:
    """The definitions of `triggering:`, declared by a class: of an exam or of a suite."""
    return {
        "triggering": {
            **_object(cls, _TRIGGERING_VALUES),
            "anyOf": [{"required": [key]} for key in _TRIGGERING_VALUES],
        },
        "queries": {**_PAIRS, "minItems": 1},
        "query": object_of(AuthoredQuery),
    }


def _object(cls: type, values: Mapping[str, Schema]) -> Schema:
    """The schema of a mapping some of whose keys are declared to be read elsewhere."""
    shape = shape_of(cls)
    return {
        "type": "object",
        "properties": properties_of(cls, values),
        "patternProperties": FREE_KEYS,
        "additionalProperties": False,
        **spelled_once(spellings_of(shape, name) for name in {rule.name: None for rule in shape.rules.values()}),
    }
