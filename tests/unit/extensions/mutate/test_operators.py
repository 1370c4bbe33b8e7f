import json

from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.extensions.mutate.mutants import MOST, Answer, Mutant, NamedWords, Operator
from agentv.extensions.mutate.operators import OPERATORS, mutants_of
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.trace import MessageStep, ToolCallStep, Trace
from doubles.thorough import examples

PARTS = st.sampled_from(
    ["30 days", "It is not ", "Ann Smith ", '{"a": 1}', "5 March 2024", "$7 ", ". ", "\n", "\ud800", "{{ x }}"]
)
TEXTS = st.lists(PARTS | st.text(max_size=20), max_size=8).map("".join)
NAMED = NamedWords(frozenset({"ann", "sku", "json", "refund"}), frozenset(), frozenset())


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


TEXT = '{"order": 7, "lines": [{"sku": "A"}], "paid": true}'


def made(operator, text=TEXT, **given):
    return list(OPERATORS[operator].make(Answer("case", text, named=NAMED, **given)))


def test_one_field_is_dropped_and_the_others_stay():
    found = made("drop-field")
    assert found[0].change == "the field 'lines' was dropped"
    assert [json.loads(one.output) for one in found] == [
        {"order": 7, "paid": True},
        {"order": 7, "lines": [{}], "paid": True},
        {"lines": [{"sku": "A"}], "paid": True},
    ]
    assert [one.counts for one in found] == [True, True, False]


def test_a_field_has_another_type():
    kinds = [one.change for one in made("retype-field", '{"a": 1, "b": null, "c": true}')]
    assert kinds == [
        "the field 'a' became a text instead of a number",
        "the field 'b' became a text instead of null",
        "the field 'c' became a text instead of a boolean",
    ]


def test_other_texts_have_no_fields():
    texts = ("plain", "{not json}", "[1, 2]", '"text"', "```\ncode\n```", "[" * 5000, "")
    assert [one for text in texts for name in ("drop-field", "retype-field") for one in made(name, text)] == []


MESSAGES = (
    Message("assistant", "", tool_calls=(ToolCall("look_up", {"order": 7}),)),
    Message("tool", "found"),
    Message("assistant", "", tool_calls=(ToolCall("refund", {"order": 7, "amount": 30}),)),
    Message("tool", "paid"),
    Message("assistant", "Done."),
)
STEPS = (
    ToolCallStep("look_up", {}),
    ToolCallStep("refund", {"amount": 30}, status="completed"),
    MessageStep("assistant", "Done."),
)


def names(mutant):
    return [call.name for message in mutant.messages for call in message.tool_calls]


def test_calls_of_a_transcript_are_dropped_with_their_results_repeated_and_moved():
    dropped, other = made("drop-call", messages=MESSAGES)
    assert (names(dropped), dropped.counts) == (["look_up"], True)
    assert [one.text for one in dropped.messages if one.role == "tool"] == ["found"]
    assert (names(other), other.counts) == (["refund"], False)
    assert names(made("repeat-call", messages=MESSAGES)[0]) == ["look_up", "refund", "refund"]
    assert [names(one) for one in made("reorder-calls", messages=MESSAGES)] == [["refund", "look_up"]]


def test_an_argument_changes():
    mutant = made("change-argument", messages=MESSAGES)[0]
    assert mutant.messages[2].tool_calls[0].arguments == {"order": 14, "amount": 30}
    assert MESSAGES[2].tool_calls[0].arguments == {"order": 7, "amount": 30}


def test_traces_change_with_their_messages_and_only_they_show_errors():
    trace = Trace(STEPS)
    failed = made("fail-tool", trace=trace)[0]
    assert [(call.name, call.failed) for call in failed.trace.tool_calls] == [("look_up", False), ("refund", True)]
    assert names(made("drop-call", trace=trace)[0]) == ["look_up"]
    assert made("fail-tool", messages=MESSAGES) == []
