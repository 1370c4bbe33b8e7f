from __future__ import annotations

import pytest

from agentv.extensions.mutate.operators.catalogue import OPERATORS
from agentv.extensions.mutate.operators.mutant import Answer
from agentv.extensions.mutate.operators.named import NamedWords

NAMED = NamedWords(frozenset({"30"}), frozenset({"refund", "late"}), frozenset())


def made(operator, text, **given):
    return list(OPERATORS[operator].make(Answer("case", text, named=NAMED, **given)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("You can return it within 30 days.", "You can not return it within 30 days."),
        ("You can't return it after 30 days.", "You can return it after 30 days."),
        ("You cannot return it after 30 days.", "You can return it after 30 days."),
        ("It won't be paid after 30 days.", "It will be paid after 30 days."),
        ("That isn't true for 30 days.", "That is true for 30 days."),
        ("You may not return it after 30 days.", "You may return it after 30 days."),
    ],
)
def test_a_sentence_says_the_opposite(before, after):
    (mutant,) = made("negate", before)
    assert (mutant.output, mutant.counts) == (after, True)


def test_questions_code_and_json_have_no_opposite():
    assert [
        one for text in ("Is it 30 days?", '{"a": "it is 30"}', "```\nit is 30\n```") for one in made("negate", text)
    ] == []


def test_only_the_negated_clause_decides_whether_a_check_must_notice():
    (mutant,) = made("negate", "This is nothing new, as said 30 days ago.")
    assert not mutant.counts


def test_a_dropped_sentence_counts_if_its_value_is_gone():
    found = made("drop-sentence", "Hello there. You have 30 days. Good bye now.")
    assert (found[0].output, found[0].counts) == ("Hello there. Good bye now.", True)
    assert [one.counts for one in found] == [True, False, False]
    twice = made("drop-sentence", "You have 30 days. I repeat, 30 days.")
    assert [one.counts for one in twice] == [False, False]
    assert made("drop-sentence", "You have 30 days.") == []


def test_one_word_of_the_criteria_does_not_make_a_sentence_matter():
    found = made("drop-sentence", "A refund is nice. The refund comes late though.")
    assert {one.output: one.counts for one in found} == {
        "A refund is nice.": True,
        "The refund comes late though.": False,
    }
