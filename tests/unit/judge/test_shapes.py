import json

import pytest
from anthropic import transform_schema
from jsonschema import Draft202012Validator

from agentv.judge.question import built_in
from agentv.judge.shapes import MODES, TYPED_KEYS, UnreadableError, schema_of
from agentv.model.run.grade import Check
from agentv.model.run.rubric import Rubric, RubricItem

LIST = Rubric(
    "checklist",
    items=(RubricItem("r1", "says 42", weight=3), RubricItem("tone", "is polite", weight=1, required=False)),
)


RANGES = ((0, 3, "wrong"), (4, 9, "nearly"), (10, 10, "right"))
POINTS = Rubric(
    "score-ranges",
    items=(
        RubricItem("r1", "says 42", weight=3, score_ranges=RANGES, min_score=7),
        RubricItem("tone", "", weight=1, score_ranges=RANGES),
    ),
)


def freeform(text):
    return MODES["freeform"].read(json.loads(text), Rubric("freeform", text="is right"))


def checklist(*checks, **more):
    return MODES["checklist"].read({"checks": list(checks), **more}, LIST)


def ranged(*checks, **more):
    return MODES["score-ranges"].read({"checks": list(checks), **more}, POINTS)


def scored(identity, score, **more):
    return {"id": identity, "score": score, **more}


def said(identity, satisfied, **more):
    return {"id": identity, "satisfied": satisfied, **more}


@pytest.mark.parametrize(
    "text",
    ["NaN", "Infinity", "-Infinity", "-0.01", "1.01", "85", "true", "null", '"0.9"', '"high"', "[1]", "{}", "1e999"],
)
def test_a_score_is_a_number_from_0_to_1(text):
    with pytest.raises(UnreadableError, match="'score' must be a number from 0 to 1, found"):
        freeform(f'{{"score": {text}}}')


def test_assertions_become_checks():
    reading = freeform(
        '{"score": 0.5, "reason": "half", "assertions": [{"text": "adds", "passed": true, "evidence": "42"},'
        ' {"text": "explains", "passed": false, "evidence": null}]}'
    )
    assert reading.checks == (Check("adds", True, "42"), Check("explains", False))
    assert reading.reason == "half"


def test_older_hits_and_misses_become_checks():
    reading = freeform('{"score": 0.5, "hits": ["adds", " "], "misses": ["does not explain"], "reasoning": "half"}')
    assert reading.checks == (Check("adds", True), Check("does not explain", False))
    assert reading.reason == "half"


@pytest.mark.parametrize(
    "rest",
    [
        '"assertions": "all good"',
        '"assertions": ["good"]',
        '"assertions": [{"text": "good"}]',
        '"assertions": [{"text": " ", "passed": true}]',
        '"assertions": [{"text": "good", "passed": "yes"}]',
        '"assertions": [{"text": "good", "passed": true, "evidence": 3}]',
        '"misses": [1]',
        '"reason": 1',
        '"pass": false',
        '"pass": "false"',
    ],
)
def test_a_malformed_part_makes_the_verdict_unreadable(rest):
    with pytest.raises(UnreadableError):
        freeform(f'{{"score": 0.9, {rest}}}')


def test_pass_beside_a_score_that_says_no_is_a_contradiction():
    with pytest.raises(UnreadableError, match=r"'pass' is true beside a score of 0\.1"):
        freeform('{"score": 0.1, "pass": true}')
    assert freeform('{"score": 0.7, "pass": true}').score == 0.7
    assert freeform('{"score": 0.7, "pass": false}').score == 0.7


@pytest.mark.parametrize(
    ("first", "second", "score", "satisfied"),
    [(True, True, 1.0, True), (True, False, 0.75, True), (False, True, 0.25, False), (False, False, 0.0, False)],
)
def test_a_checklist_is_scored_by_weight(first, second, score, satisfied):
    reading = checklist(said("tone", second), said("r1", first, reasoning="because"), overall_reasoning="so")
    assert (reading.score, reading.satisfied, reading.reason) == (score, satisfied, "so")
    assert reading.checks == (Check("says 42", first, "because"), Check("is polite", second))


@pytest.mark.parametrize(
    ("checks", "problem"),
    [
        ([], "it has no result for item 'r1'"),
        ([said("r1", True)], "it has no result for item 'tone'"),
        ([said("r1", True), said("tone", True), said("r9", True)], "the rubric has no item 'r9'"),
        (
            [said("r1", True), said("tone", True), said("r1", False)],
            "it has two results for the 'satisfied' of item 'r1'",
        ),
        ([said("r1", "yes"), said("tone", True)], "each of 'checks' must have"),
        ([said(1, True), said("tone", True)], "the rubric has no item '1'"),
        ([said("r1", True, reasoning=[]), said("tone", True)], "'reasoning' must be text"),
        (["r1", "tone"], "'checks' must be a list of objects"),
    ],
)
def test_a_checklist_must_say_just_one_thing_of_each_item(checks, problem):
    with pytest.raises(UnreadableError, match=problem):
        checklist(*checks)


def test_an_id_that_is_a_whole_number_may_be_written_as_one():
    numbered = Rubric("checklist", items=(RubricItem("1", "adds"), RubricItem("r1", "is polite")))
    read = MODES["checklist"].read
    reading = read({"checks": [{"id": 1, "satisfied": True}, said("r1", False)]}, numbered)
    assert [check.passed for check in reading.checks] == [True, False]
    for other, problem in ((True, "must have an 'id', found True"), (2, "has no item '2'")):
        with pytest.raises(UnreadableError, match=problem):
            read({"checks": [{"id": other, "satisfied": True}, said("1", True), said("r1", True)]}, numbered)


@pytest.mark.parametrize(
    ("first", "second", "score", "satisfied"),
    [(10, 10, 1.0, True), (7, 0, 0.525, True), (6, 10, 0.7, False), (0, 0, 0.0, False), (10.0, 2, 0.8, True)],
)
def test_points_are_scored_by_weight_and_a_missed_mark_falls(first, second, score, satisfied):
    reading = ranged(scored("tone", second), scored("r1", first), overall_reasoning="so")
    assert (reading.score, reading.satisfied, reading.reason) == (score, satisfied, "so")
    assert reading.details == {"points": {"r1": first, "tone": second}}


@pytest.mark.parametrize("score", [11, -1, 7.5, "7", True, None, [7], float("nan"), float("inf"), 1e400])
def test_points_are_whole_numbers_from_0_to_10(score):
    with pytest.raises(UnreadableError, match="a whole number from 0 to 10, found"):
        ranged(scored("r1", score), scored("tone", 1))


@pytest.mark.parametrize(
    ("checks", "problem"),
    [
        ([], "it has no result for item 'r1'"),
        ([scored("r1", 1)], "it has no result for item 'tone'"),
        ([scored("r1", 1), scored("tone", 1), scored("r9", 1)], "the rubric has no item 'r9'"),
        ([scored("r1", 1), scored("tone", 1), scored("r1", 2)], "it has two results for the 'score' of item 'r1'"),
        ([said("r1", True), said("tone", True)], "each of 'checks' must have a 'score'"),
    ],
)
def test_each_item_gets_its_points_once(checks, problem):
    with pytest.raises(UnreadableError, match=problem):
        ranged(*checks)


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
    """Remove the type of enumerations, which is redundant."""
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
    # anthropic's SDK moves keywords unknown to its API into descriptions
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
