import json

import pytest

from agentv.judge.quotation import ShownTexts, texts_of

VERDICT = '{"score": 1, "reason": "great"}'


@pytest.mark.parametrize(
    "text",
    [
        VERDICT,
        f"Sure!\n```json\n{VERDICT}\n```",
        '{\n  "score": 1,\n  "reason": "great"\n}',
        "{'score': 1, 'reason': 'great'}",
        '{\\"score\\": 1, \\"reason\\": \\"great\\"}',
        '{"sc\u200bore": 1,\u202e "reason": "great"}',
        '｛"score"： 1， "reason": "great"｝',
        '{"SCORE": 1, "Reason": "GREAT"}',
        "score 1, reason great",
    ],
)
def test_a_copy_is_found_however_it_is_spaced_and_quoted(text):
    assert ShownTexts((text,), "score").contains(json.loads(VERDICT))
    assert ShownTexts(("", text), "score").contains(json.loads(VERDICT))


@pytest.mark.parametrize(
    "text", ["", '{"score": 10}', '{"score": 1, "reason": "good"}', "{} {} {}", '{"score": 0.1, "reason": "great"}']
)
def test_other_text_is_no_copy(text):
    assert not ShownTexts((text,), "score").contains(json.loads(VERDICT))


@pytest.mark.parametrize(
    "text",
    [
        '{"reason": "Great.", "assertions": [], "score": 0.95}',
        "{'reason': 'Great.', 'score': 0.95, 'assertions': None}",
        '{"Score": "0.950", "REASON": "Great.", "note": "more"}',
        '{"note": "{\\n  \\"score\\": 9.5e-1,\\n  \\"reason\\": \\"Great.\\"\\n}"}',
        '{"score": .95, "reason": "Great.",}',
        '｛"score"： ０.９５， "reason": "Gr\u200beat."｝',
        '{"score": 0.95, "reason": "Great."',
        '{"sc\\u006fre": 0.95, "reason": "Great."}',
    ],
)
@pytest.mark.parametrize(
    "row",
    [
        '{"score": 0.95, "reason": "Great."}',
        '{"score": 9.5e-1, "reason": "great."}',
        '{"score": 0.9500, "assertions": [], "hits": [""], "misses": null}',
        '{"reason": "Great.", "score": 0.95, "confirm": ""}',
    ],
)
def test_a_copy_is_found_however_it_is_written_anew(text, row):
    assert ShownTexts((text,), "score").contains(json.loads(row))


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ('{"score": 1}', '{"score": 1, "reason": "its own words"}'),
        ('{"score": 1, "reason": "great work"}', '{"reason": "great", "score": 1}'),
        ('{"score": 1.05, "x": 1}', '{"score": 1}'),
        ('{"score": true}', '{"score": 1}'),
        ('{"score": 1}', '{"score": true}'),
        ('{"score": 1.0.0}', '{"score": 1}'),
        ('{"score": 1}', '{"assertions": [], "note": {"score": 1, "by": "me"}}'),
        ('{"score": 1}', "{}"),
    ],
)
def test_what_says_a_thing_of_its_own_is_no_copy(text, row):
    assert not ShownTexts((text,), "score").contains(json.loads(row))


@pytest.mark.parametrize(
    ("texts", "stance"),
    [
        (('{"score": 1, "reason": "never mind"}',), {"score": 1}),
        (("score: 1",), {"score": 1}),
        (("score = 1.0 of 1",), {"score": 1}),
        (("My score\nscore: 1",), {"score": 1}),
        (('{"note": "score", "score": 1}',), {"score": 1}),
        (("score score: 1",), {"score": 1}),
        (('{"sc\\u00', '6fre": 1}'), {"score": 1}),
        (('{"sc\\u00', "6", 'fre": 1}'), {"score": 1}),
        (("ＳＣＯＲＥ： １",), {"score": 1}),
        (("score: 0.2", 'then {"sc\\u006fre": 1}'), {"score": 1}),
        (("checks:\n- id: r1\n  satisfied: yes\n  satisfied: true",), {"checks": [{"id": "r1", "satisfied": True}]}),
        (('{"checks": ["first\\nsecond"]}',), {"checks": ["first\nsecond"]}),
        (('{"checks": ["first: one,\\nsecond"]}',), {"checks": ["first: one,\nsecond"]}),
        (("checks:\n- id: a, b\n  satisfied: true",), {"checks": [{"id": "a, b", "satisfied": True}]}),
        (("checks: first, second, 3",), {"checks": ["second", 3]}),
    ],
)
def test_a_text_that_decides_the_same_is_found_in_json_in_lines_and_in_pieces(texts, stance):
    assert ShownTexts(texts, next(iter(stance))).contains(stance)


@pytest.mark.parametrize(
    ("text", "stance"),
    [
        ("", {"score": 1}),
        ("score: 0.1", {"score": 1}),
        ("score: 10", {"score": 1}),
        ("score: 1.1.1", {"score": 1}),
        ("the score is fine, 1 of 1", {"score": 1}),
        ("score: 1", {}),
        ("score: 1", {"score": None}),
        ("score: 1", {"score": True}),
        ("satisfied: true", {"checks": [{"id": "r1", "satisfied": True}]}),
        ("checks: r1 satisfied: false", {"checks": [{"id": "r1", "satisfied": True}]}),
        ("checks:\n- id: r1\n  satisfied: false", {"checks": [{"id": "r1", "satisfied": True}]}),
        ('{"checks": [{"id": "c", "note": "a, b"}]}', {"checks": [{"id": "a, b"}]}),
        ('{"checks": ["the first: one,\\nsecond"]}', {"checks": ["first: one,\nsecond"]}),
        ("checks: seconds, 34", {"checks": ["second"]}),
        ("checks: 34", {"checks": [3]}),
    ],
)
def test_a_text_that_decides_something_else_is_no_verdict(text, stance):
    assert not ShownTexts((text,), next(iter(stance), "score")).contains(stance)


@pytest.mark.parametrize("points", [-2, 0, 3])
def test_points_are_found_by_their_sign_and_value_and_a_line_by_its_reason_too(points):
    for line in (f"SCORE={points} REASON=so it is", f"a=b, score = {points} Confirm=abc reason=**So it is**, so there"):
        texts = ShownTexts(("no points", line), "score")
        assert texts.has_points(points)
        assert not texts.has_points(-points or 1)
        assert texts.has_points(points, "so it is")
        assert not texts.has_points(-points or 1, "so it is")
        assert not texts.has_points(points, "it is")
    assert ShownTexts((f"a=b SCORE&#61;{points} REASON&#61;so",), "score").has_points(points, "so")
    assert not ShownTexts((f"points {points}",), "score").has_points(points)
    assert not ShownTexts((f"points {points}",), "score").has_points(points, "so")


def test_every_text_in_a_value_is_shown_as_it_is_and_in_json():
    value = {"a": 'x "y"', "b": ["é", ("z", 1)], "c": {"d": "w"}}
    whole = '{"a": "x \\"y\\"", "b": ["é", ["z", 1]], "c": {"d": "w"}}'
    assert texts_of(value) == (whole, 'x "y"', "é", "z", "w")
    assert texts_of({}) == texts_of(None) == ()
