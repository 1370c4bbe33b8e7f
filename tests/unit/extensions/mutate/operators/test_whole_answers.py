from __future__ import annotations

from agentv.extensions.mutate.operators.catalogue import OPERATORS
from agentv.extensions.mutate.operators.mutant import Answer
from agentv.extensions.mutate.operators.named import NamedWords

TEXT = "You can return the lamp to us within 30 days."
NAMED = NamedWords(frozenset({"30", "lamp"}), frozenset(), frozenset({"contains"}))


def made(operator, text=TEXT, named=NAMED, **given):
    return list(OPERATORS[operator].make(Answer("case", text, named=named, **given)))


def test_an_answer_is_cut_at_a_word():
    (mutant,) = made("cut-in-half")
    assert mutant.output == "You can return the"
    assert mutant.counts
    assert made("cut-in-half", "4") == []


def test_the_answer_of_another_case_counts_only_if_something_named_is_gone():
    (mutant,) = made("swap-answer", others=(f" {TEXT} ", "We open at nine."))
    assert (mutant.output, mutant.counts) == ("We open at nine.", True)
    (same,) = made("swap-answer", others=("The lamp: 30.",))
    assert not same.counts
    assert made("swap-answer", others=(TEXT,)) == []


def test_a_case_that_wants_a_refusal_is_not_refused():
    assert [one.counts for one in made("refuse")] == [True]
    assert made("refuse", named=NamedWords(frozenset({"lamp"}), frozenset(), frozenset({"is-refusal"}))) == []


def test_another_language_keeps_the_numbers_and_needs_english_sentences():
    (mutant,) = made("other-language")
    assert "30" in mutant.output
    assert "lamp" not in mutant.output
    assert [
        one
        for text in ("4", "SELECT id FROM users", "Vielen Dank für die Lampe")
        for one in made("other-language", text)
    ] == []


def test_an_answer_without_anything_named_has_no_mutant_that_counts():
    plain = NamedWords(frozenset(), frozenset(), frozenset())
    found = [one for name in OPERATORS for one in made(name, named=plain, others=("Other.",))]
    assert len(found) > 5
    assert not any(one.counts for one in found)
