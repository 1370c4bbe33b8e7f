from agentv.extensions.mutate.operators.catalogue import OPERATORS
from agentv.extensions.mutate.operators.mutant import Answer
from agentv.extensions.mutate.operators.named import NamedWords
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.trace import MessageStep, ToolCallStep, Trace

NAMED = NamedWords(frozenset({"refund"}), frozenset(), frozenset())
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


def made(operator, **given):
    return list(OPERATORS[operator].make(Answer("case", "Done.", named=NAMED, **given)))


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
