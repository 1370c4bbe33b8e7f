"""The transcript that a trace gives."""

from msgspec.structs import replace

from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import TargetResponse
from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, UsageStep
from agentv.model.values.trace_summary import completed, messages_of
from agentv.model.values.usage import TokenUsage

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
