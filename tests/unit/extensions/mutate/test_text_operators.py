import pytest

from agentv.extensions.mutate.mutants import Answer, NamedWords
from agentv.extensions.mutate.operators import OPERATORS

TEXT = "You can return the lamp to us within 30 days."
NAMED = NamedWords(frozenset({"30", "lamp"}), frozenset(), frozenset({"contains"}))


def made(operator, text=TEXT, named=NAMED, **given):
    return list(OPERATORS[operator].make(Answer("case", text, named=named, **given)))


def test_the_answer_of_another_case_counts_only_if_something_named_is_gone():
    (mutant,) = made("swap-answer", others=(f" {TEXT} ", "We open at nine."))
    assert (mutant.output, mutant.counts) == ("We open at nine.", True)
    (same,) = made("swap-answer", others=("The lamp: 30.",))
    assert not same.counts
    assert made("swap-answer", others=(TEXT,)) == []


def test_a_case_that_wants_a_refusal_is_not_refused():
    assert [one.counts for one in made("refuse")] == [True]
    assert made("refuse", named=NamedWords(frozenset({"lamp"}), frozenset(), frozenset({"is-refusal"}))) == []


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


@pytest.mark.parametrize(
    ("operator", "text", "changes"),
    [
        ("change-number", "Within 30 days, really 30 days.", ['"30 days" became "60 days"']),
        ("change-number", "It costs 1,200 EUR or 2.50.", ['"1,200 EUR" became "2,400 EUR"', '"2.50" became "5.00"']),
        ("change-number", "See RFC-2616, v1.2.3, 10:30 and #12.", []),
        ("change-number", "Order 1234567 was sent.", ['"1234567 was" became "1234568 was"']),
        ("change-number", "On 5 March 2024 and 2024-03-05.", []),
        ("change-date", "On 5 March 2024.", ['"5 March 2024" became "5 April 2024"']),
        ("change-date", "On March 5th and 2024-12-01.", ['"March 5th" became "April 5th"', '"2024-12-01" became "2025-01-10"']),
        ("change-date", "Not a date: 2024-13-45.", []),
    ],
)  # fmt: skip
def test_a_value_changes_everywhere_and_keeps_its_form(operator, text, changes):
    changes = [one.replace("1234567 was", "1234567").replace("1234568 was", "1234568") for one in changes]
    found = made(operator, text)
    assert [one.change for one in found] == changes
