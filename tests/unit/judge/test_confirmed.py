"""Objects of a reply that carry the word of the question, however they are written."""

from __future__ import annotations

import pytest

from agentv.judge.confirmed import objects_with, unique
from agentv.judge.shapes import UnreadableError

WORD = "0123456789abcdef"
OWN = f'{{"score": 1, "confirm": "{WORD}"}}'


@pytest.mark.parametrize(
    "own",
    [
        OWN,
        f'{{"confirm": " {WORD}\\n", "score": 1}}',
        f'{{"score": 1, "confirm": "{WORD.upper()}"}}',
        f'{{"confirm": "{WORD}", "score": 1, "reason": "so says {WORD}"}}',
        f'{{"confirm": "{WORD}", "checks": [{{"id": "r1"}}, {{"id": "r2"}}]}}',
    ],
)
def test_an_object_with_the_word_is_found_with_just_its_own_text_whatever_is_around_it(own):
    wrong = []
    for reply in (own, f"{{ {{x {own} }}", f'{{"a": {own}}} and "more"', f"{own}{WORD}"):
        found = objects_with(WORD, reply)
        if [source for _, source in found] != [own] or "confirm" not in found[0][0]:
            wrong.append((reply, found))
    assert wrong == []


def test_letters_whose_small_forms_are_longer_move_nothing():
    assert "İ".lower() != "i"
    assert objects_with(WORD, f"{'İ' * 300} {OWN}") == [({"score": 1, "confirm": WORD}, OWN)]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        WORD,
        f'"confirm": "{WORD}"',
        f'{{"score": 1}} "confirm": "{WORD}"',
        f'{{"score": 1, "reason": "{WORD}"}}',
        f'{{"score": 1, "confirm": "0000", "reason": "{WORD}"}}',
        f'{{"score": 1, "confirm": "{WORD}0"}}',
        f'{{"score": 1, "confirm": ["{WORD}"]}}',
        f'{{"score": 1, "{WORD}": "confirm"}}',
        f'{{"confirm": "{WORD}", "confirm": "{WORD}"}}',
        f'{{"score": 1, "confirm": "{WORD}"',
    ],
)
def test_a_word_elsewhere_confirms_nothing(reply):
    assert objects_with(WORD, reply) == []


def test_objects_come_in_the_order_of_the_reply_and_each_once():
    first, second = OWN, OWN.replace("1,", "0,")
    reply = f'{first} then {{"why": "{WORD}", "inner": {second}}}, {WORD}'
    assert [source for _, source in objects_with(WORD, reply)] == [first, second]


def test_an_object_that_is_far_longer_than_a_verdict_is_not_looked_at():
    long = "x" * 100_000
    assert objects_with(WORD, f'{{"reason": "{long}", "confirm": "{WORD}"}}') == []
    assert objects_with(WORD, f'{{"confirm": "{WORD}", "reason": "{long}"}}') == []


def test_keys_of_an_object_are_unique():
    assert unique([("a", 1), ("b", 1)]) == {"a": 1, "b": 1}
    with pytest.raises(UnreadableError, match="a key appears twice"):
        unique([("a", 1), ("a", 1)])
