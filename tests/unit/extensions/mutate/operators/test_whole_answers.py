from agentv.extensions.mutate.operators.catalogue import OPERATORS
from agentv.extensions.mutate.operators.mutant import Answer
from agentv.extensions.mutate.operators.named import NamedWords

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
