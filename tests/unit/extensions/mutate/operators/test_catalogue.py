from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.extensions.mutate.operators.catalogue import OPERATORS, mutants_of
from agentv.extensions.mutate.operators.mutant import MOST, Answer, Mutant, Operator
from agentv.extensions.mutate.operators.named import NamedWords
from agentv.model.values.message import Message, ToolCall
from doubles.thorough import examples

PARTS = st.sampled_from(
    ["30 days", "It is not ", "Ann Smith ", '{"a": 1}', "5 March 2024", "$7 ", ". ", "\n", "\ud800", "{{ x }}"]
)
TEXTS = st.lists(PARTS | st.text(max_size=20), max_size=8).map("".join)
NAMED = NamedWords(frozenset({"30", "ann"}), frozenset(), frozenset())


@given(TEXTS)
@settings(max_examples=examples(100, 30))
def test_whatever_the_answer_is_mutants_differ_from_it_and_are_the_same_again(text):
    answer = Answer("case", text, others=("Something else.",), named=NAMED)
    operators = tuple(OPERATORS.values())
    found = list(mutants_of(answer, operators))
    assert found == list(mutants_of(answer, operators))
    for operator, mutant in found:
        assert mutant.output != text, operator.name
        assert mutant.change
    texts = [mutant.output for _, mutant in found]
    assert len(texts) == len(set(texts))
    assert all(sum(one is operator for one, _ in found) <= MOST for operator in operators)


def test_a_trace_that_is_the_same_is_no_mutant():
    calls = (Message("assistant", "", tool_calls=(ToolCall("a", {}), ToolCall("b", {}))),)
    same, other = Mutant("same", True, messages=calls), Mutant("other", True, messages=())
    operator = Operator("own", "does nothing", lambda _: [same, other])
    assert [mutant for _, mutant in mutants_of(Answer("case", "text", messages=calls), [operator])] == [other]
