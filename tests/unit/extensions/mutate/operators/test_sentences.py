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


def test_only_the_negated_clause_decides_whether_a_check_must_notice():
    (mutant,) = made("negate", "This is nothing new, as said 30 days ago.")
    assert not mutant.counts
