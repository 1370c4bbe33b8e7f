"""Verdicts of the types beside `llm-rubric`: their schemas, read strictly, and scored by counting."""

import json

import pytest
from anthropic import transform_schema
from jsonschema import Draft202012Validator

from agentv.judge.question import built_in
from agentv.judge.shapes import MODES, TYPED_KEYS, UnreadableError, schema_of
from agentv.model.run.rubric import Rubric, RubricItem

TYPED = list(TYPED_KEYS)

WORTH = (("A", 0.8), ("B", 0.6), ("C", 1.0), ("D", 0.0), ("E", 0.7))
LINES = (RubricItem("s1", "Paris is the capital."), RubricItem("s2", "France has wine."))
GOOD = {
    "factuality": {"category": "B", "reason": "it adds the river"},
    "closed-qa": {"criterion_met": True, "reason": "it does"},
    "answer-relevance": {"statements": [{"statement": "It is Paris.", "relevant": True}]},
    "context-faithfulness": {"claims": [{"claim": "It is Paris.", "supported": True, "reasoning": "line 1"}]},
    "context-recall": {"statements": [{"id": "s1", "attributed": True}, {"id": "s2", "attributed": False}]},
    "context-relevance": {"sentences": [{"id": "s1", "relevant": True}, {"id": "s2", "relevant": False}]},
    "goal-success": {"goal_achieved": False, "reason": "it gave up"},
}


def read(mode, row):
    rubric = Rubric(mode, text="is polite", items=LINES, category_scores=WORTH)
    return MODES[mode].read(row, rubric)


@pytest.mark.parametrize(
    ("mode", "score", "passed"),
    [
        ("factuality", 0.6, [True]),
        ("closed-qa", 1.0, [True]),
        ("answer-relevance", 1.0, [True]),
        ("context-faithfulness", 1.0, [True]),
        ("context-recall", 0.5, [True, False]),
        ("context-relevance", 0.5, [True, False]),
        ("goal-success", 0.0, [False]),
    ],
)
def test_the_score_is_counted(mode, score, passed):
    reading = read(mode, GOOD[mode])
    assert reading.score == score
    assert [check.passed for check in reading.checks] == passed


@pytest.mark.parametrize(
    ("mode", "row", "said"),
    [
        ("factuality", {"category": "F"}, "must be one of A, B, C, D, E, found 'F'"),
        ("factuality", {"category": "b"}, "must be one of"),
        ("factuality", {"category": "A", "reason": 1}, "'reason' must be text"),
        ("closed-qa", {"criterion_met": "yes"}, "must be true or false, found 'yes'"),
        ("goal-success", {"goal_achieved": None}, "must be true or false"),
        ("answer-relevance", {"statements": []}, "lists nothing"),
        ("answer-relevance", {"statements": [{"statement": "", "relevant": True}]}, "must have a 'statement'"),
        ("context-faithfulness", {"claims": "all"}, "must be a list of objects"),
        ("context-faithfulness", {"claims": [{"claim": "A.", "supported": 1}]}, "that is true or false"),
        (
            "context-faithfulness",
            {"claims": [{"claim": "A.", "supported": True}, {"claim": "a.", "supported": False}]},
            "both supported and not",
        ),
        ("context-recall", {"statements": [{"id": "s1", "attributed": True}]}, "no result for item 's2'"),
        ("context-recall", {"statements": [{"id": True, "attributed": True}]}, "must have an 'id'"),
        ("context-recall", {"statements": [{"id": 1, "attributed": True}]}, "no item '1'"),
        (
            "context-recall",
            {"statements": [*GOOD["context-recall"]["statements"], {"id": "s3", "attributed": True}]},
            "no item 's3'",
        ),
        (
            "context-relevance",
            {"sentences": [*GOOD["context-relevance"]["sentences"], {"id": "s2", "relevant": True}]},
            "two results for the 'relevant' of item 's2'",
        ),
    ],
)
def test_what_is_no_verdict_is_refused(mode, row, said):
    with pytest.raises(UnreadableError, match=said.replace("[", r"\[")):
        read(mode, row)


@pytest.mark.parametrize("mode", TYPED)
def test_the_prompt_asks_for_the_shape_that_is_read(mode):
    asked = built_in(f"{mode}-reply")
    shape = json.loads(
        next(line for line in asked.splitlines() if line.startswith("{")).replace("<true or false>", "true")
    )
    keys = TYPED_KEYS[mode]
    assert shape.keys() == keys.keys()
    assert MODES[mode].key in keys
    for name, schema in keys.items():
        if schema.get("type") == "array":
            line = schema["items"]
            assert set(line["required"]) == line["properties"].keys()
            assert shape[name][0].keys() <= line["properties"].keys()


@pytest.mark.parametrize("mode", TYPED)
def test_the_schema_admits_a_verdict_and_nothing_else(mode):
    from jsonschema import Draft202012Validator

    keys = TYPED_KEYS[mode]
    closed = {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}
    full = {"reason": "", **GOOD[mode]} if "reason" in keys else GOOD[mode]
    rows = {name: [{"reasoning": None, **one} for one in value] for name, value in full.items() if type(value) is list}
    validator = Draft202012Validator(closed)
    assert validator.is_valid({**full, **rows})
    assert not validator.is_valid({})
    assert not validator.is_valid({**full, **rows, "score": 1})


@pytest.mark.parametrize("mode", TYPED)
def test_a_provider_that_can_promise_a_shape_is_told_it(mode):
    schema = schema_of(Rubric(mode))
    assert schema["properties"].keys() == {*TYPED_KEYS[mode], "confirm"}
    assert schema["required"] == list(schema["properties"])


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
    MODES[mode].read(VERDICTS[mode], RUBRICS[mode])


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
