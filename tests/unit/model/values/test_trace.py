"""Summaries of a trace, and the calls recorded by agentv's tool servers."""

import pytest
from msgspec.structs import replace

from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import TargetResponse
from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, UsageStep
from agentv.model.values.trace_summary import completed, messages_of
from agentv.model.values.usage import TokenUsage


def test_usage_that_our_gateway_saw_counts_alone():
    reported = UsageStep("m", TokenUsage(1, 1, 2), 0.5)
    seen = UsageStep("m", TokenUsage(10, 5, 15), 0.25, evidence="gateway")
    assert Trace((reported, seen, seen)).tokens == TokenUsage(20, 10, 30)
    assert Trace((reported, seen, seen)).cost_usd == 0.5
    assert Trace((reported, reported)).tokens == TokenUsage(2, 2, 4)


def test_a_cost_that_is_known_in_part_is_unknown():
    assert Trace((UsageStep("m", None, 0.5), UsageStep("m"))).cost_usd is None
    assert Trace().cost_usd is None
    assert Trace((UsageStep(cost_usd=0.0),)).cost_usd == 0.0
    assert Trace((UsageStep("m"), UsageStep("m")), session_cost_usd=0.25).cost_usd == 0.25


def test_a_cost_of_zero_beside_tokens_is_unknown_unless_our_gateway_counted_it():
    tokens = TokenUsage(10, 5, 15)
    assert UsageStep("m", tokens, 0.0).cost_usd is None
    assert UsageStep("m", tokens, 0.0, evidence="gateway").cost_usd == 0.0
    assert Trace((UsageStep("m", tokens, 0.5), UsageStep("m", tokens, 0.0))).cost_usd is None


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        (Trace(error="the bank is closed", stop_reason="end_turn"), "the session ended in an error: the bank is closed"),
        (Trace(stop_reason="MAX_TOKENS"), "the session ended without an answer: MAX_TOKENS"),
        (Trace(stop_reason="refusal"), "the session ended without an answer: refusal"),
        (Trace(partial="the session ends before the agent has answered"), "the session ends before the agent has answered"),
        (Trace(partial="line 4: not JSON", stop_reason="end_turn"), ""),
        (Trace(stop_reason="stop"), ""),
    ],
)  # fmt: skip
def test_why_a_session_gave_no_answer(trace, why):
    assert trace.unanswered == why


_SAID = MessageStep("assistant", "done")


@pytest.mark.parametrize(
    ("trace", "turns"),
    [
        (Trace(), 0),
        (Trace((UsageStep("m"), UsageStep("m"), UsageStep("m", error="503"), UsageStep("m", parent="7"), _SAID)), 2),
        (Trace((_SAID, _SAID, MessageStep("assistant", "found", parent="7"), MessageStep("user", "go"))), 2),
        (Trace((_SAID, _SAID, _SAID, UsageStep("m"))), 3),
        (Trace((_SAID, UsageStep("m")), metadata={"turns": 4}), 4),
        (Trace((_SAID,), metadata={"turns": "many"}), 1),
    ],
)
def test_turns_are_the_most_of_calls_messages_and_what_the_agent_reports(trace, turns):
    assert trace.turns == turns


TRACE = Trace(
    (
        ToolCallStep("plan", {}, "TodoWrite"),
        MessageStep("user", "go"),
        ToolCallStep("read", {"path": "a"}, "Read", "c0", {"lines": 2}),
        MessageStep("assistant", "running"),
        UsageStep("m", TokenUsage(3, 4, 7), 0.5),
        ToolCallStep("shell", {"command": "x"}, "Bash", "c1", None, "exit 1", "failed", 1.0, 2.0),
        PermissionStep("shell", True),
        MessageStep("assistant", "done"),
    ),
    stop_reason="end_turn",
    duration_ms=9.0,
)


def test_calls_stand_in_the_message_before_them():
    plan = ToolCall("plan", {}, native_name="TodoWrite")
    read = ToolCall("read", {"path": "a"}, "c0", None, '{"lines": 2}', "Read")
    shell = ToolCall("shell", {"command": "x"}, "c1", 2.0, "exit 1", "Bash")
    assert messages_of(TRACE) == (
        Message("assistant", "", tool_calls=(plan,)),
        Message("user", "go"),
        Message("assistant", "", tool_calls=(read,)),
        Message("assistant", "running", tool_calls=(shell,)),
        Message("assistant", "done"),
    )
    assert messages_of(Trace()) == ()


def test_an_answer_is_completed_from_its_trace():
    found = completed(TargetResponse("done", trace=TRACE))
    shown = (found.token_usage, found.cost_usd, found.duration_ms, found.finish_reason)
    assert shown == (TokenUsage(3, 4, 7), 0.5, 9.0, "end_turn")
    assert found.messages == messages_of(TRACE)


def test_what_a_partial_trace_says_of_use_is_unknown():
    found = completed(TargetResponse("done", trace=replace(TRACE, partial="cut")))
    assert (found.token_usage, found.cost_usd, found.duration_ms) == (None, None, None)
    assert found.messages == messages_of(TRACE)
    assert found.metadata == {"trace_partial": "cut"}


def test_what_the_answer_says_itself_stays():
    said = TargetResponse("x", (Message("assistant", "x"),), TokenUsage(1, 1, 2), 0.1, 5.0, "stop", trace=TRACE)
    assert completed(said) == said
    assert completed(TargetResponse("x")) == TargetResponse("x")
