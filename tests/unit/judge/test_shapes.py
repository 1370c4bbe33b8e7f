import json

import pytest

from agentv.judge.shapes import MODES, UnreadableError
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
