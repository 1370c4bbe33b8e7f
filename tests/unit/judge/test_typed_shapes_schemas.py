import json

import pytest
from anthropic import transform_schema
from jsonschema import Draft202012Validator

from agentv.judge.shapes import SHAPES
from agentv.judge.typed_shapes import schema_of
from agentv.model.run.rubric import Rubric, RubricItem

ITEMS = (RubricItem("r1", "says 42"), RubricItem("tone", "is polite"))
RUBRICS = {
    "freeform": Rubric("freeform", "is right"),
    "checklist": Rubric("checklist", items=ITEMS),
    "score-ranges": Rubric("score-ranges", items=ITEMS),
}
VERDICTS = {
    "freeform": {
        "score": 0.5,
        "reason": None,
        "assertions": [{"text": "adds", "passed": True, "evidence": None}],
        "confirm": "0011223344556677",
    },
    "checklist": {
        "checks": [
            {"id": "r1", "satisfied": True, "reasoning": "it does"},
            {"id": "tone", "satisfied": False, "reasoning": None},
        ],
        "overall_reasoning": None,
        "confirm": "0011223344556677",
    },
    "score-ranges": {
        "checks": [{"id": "r1", "score": 7, "reasoning": None}, {"id": "tone", "score": 10, "reasoning": "kind"}],
        "overall_reasoning": "good",
        "confirm": "0011223344556677",
    },
}


def objects(schema):
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for inner in schema.values():
            yield from objects(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from objects(inner)


def untyped(schema):
    """Without the types of enumerations, which say it themselves."""
    if isinstance(schema, list):
        return [untyped(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: untyped(inner) for key, inner in schema.items() if key != "type" or "enum" not in schema}


@pytest.mark.parametrize("mode", RUBRICS)
def test_every_object_is_closed_and_every_key_required(mode):
    schema = schema_of(RUBRICS[mode])
    Draft202012Validator.check_schema(schema)
    found = list(objects(schema))
    assert len(found) == 2
    for one in found:
        assert one["additionalProperties"] is False
        assert one["required"] == list(one["properties"])
    assert schema["properties"]["confirm"]["type"] == "string"


@pytest.mark.parametrize("mode", RUBRICS)
def test_it_has_nothing_that_some_provider_refuses(mode):
    schema = schema_of(RUBRICS[mode])
    words = json.dumps(schema)
    for keyword in ("minimum", "maximum", "minItems", "maxItems", "pattern", "const", "oneOf", "$ref", '"type": ['):
        assert keyword not in words
    # the SDK of anthropic moves what its API does not know into descriptions
    assert transform_schema(schema) == untyped(schema)


@pytest.mark.parametrize("mode", RUBRICS)
def test_what_obeys_it_is_read(mode):
    Draft202012Validator(schema_of(RUBRICS[mode])).validate(VERDICTS[mode])
    SHAPES[mode].read(VERDICTS[mode], RUBRICS[mode])


@pytest.mark.parametrize(
    ("mode", "wrong"),
    [
        ("freeform", {"score": 1}),
        ("freeform", {key: value for key, value in VERDICTS["freeform"].items() if key != "confirm"}),
        ("freeform", {**VERDICTS["freeform"], "more": 1}),
        ("checklist", {**VERDICTS["checklist"], "checks": [{"id": "r9", "satisfied": True, "reasoning": None}]}),
        ("checklist", {**VERDICTS["checklist"], "checks": [{"id": "r1", "satisfied": "yes", "reasoning": None}]}),
        ("score-ranges", {**VERDICTS["score-ranges"], "checks": [{"id": "r1", "score": 7.5, "reasoning": None}]}),
    ],
)
def test_what_does_not_is_refused(mode, wrong):
    assert not Draft202012Validator(schema_of(RUBRICS[mode])).is_valid(wrong)
