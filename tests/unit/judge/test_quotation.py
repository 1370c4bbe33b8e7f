import json
from time import process_time

import pytest

from agentv.judge.quotation import ShownTexts

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
    assert ShownTexts((text,), "score").has(VERDICT, json.loads(VERDICT))
    assert ShownTexts(("", text), "score").has(VERDICT, json.loads(VERDICT))


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"score": 10}',
        '{"score": 1, "reason": "good"}',
        "{} {} {}",
        '{"score": 0.1, "reason": "great"}',
    ],
)
def test_other_text_is_no_copy(text):
    assert not ShownTexts((text,), "score").has(VERDICT, json.loads(VERDICT))


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
    assert ShownTexts((text,), "score").has(row, json.loads(row))


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
    assert not ShownTexts((text,), "score").has(row, json.loads(row))


def test_numbers_are_the_same_by_value():
    for shown, said in (("10", "1e1"), ("1e1", "10"), ("+0.5", "0.50"), ("0", "0.0")):
        row = f'{{"note": null, "score": {said}}}'
        assert ShownTexts((f'{{"score": {shown}}}',), "score").has(row, json.loads(row))


def test_a_long_text_of_numbers_is_looked_through_in_no_time():
    shown = "{" + ",".join(f'"score": {n}' for n in range(20_000)) + "{" * 20_000
    row = {"checks": [{"id": f"r{n}", "score": n} for n in range(5_000)]}
    began = process_time()
    assert not ShownTexts((shown,), "score").has(json.dumps(row), row)
    assert process_time() - began < 1
