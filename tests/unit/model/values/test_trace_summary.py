"""What user code sees of a trace, and what assertions on calls read."""

import pytest

from agentv.assertions.measured import ExecutionMetrics
from agentv.extensions.agents.assertions.tool_calls import ExpectedCall, ToolCallF1, ToolTrajectory
from agentv.extensions.agents.assertions.trajectory import (
    Arguments,
    Counted,
    SkillUsed,
    StepBounds,
    StepCount,
    ToolArgsMatch,
    ToolSequence,
    ToolUsed,
)
from agentv.model.run.context import AssertionContext
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, UsageStep
from agentv.model.values.trace_summary import messages_of
from agentv.model.values.usage import TokenUsage

TRACE = Trace(
    (
        MessageStep("user", "refund it"),
        UsageStep("m", TokenUsage(10, 5, 15), 0.5),
        MessageStep("assistant", "first the order"),
        ToolCallStep("skill", {"skill": "refund"}, "Skill", status="completed"),
        ToolCallStep("shop.get_order", {"id": 7}, "mcp__shop__get_order", "c1", {"status": "shipped"}, status="completed"),
        ToolCallStep("shell", {"command": "cat .codex/skills/tax/SKILL.md"}, "Bash", "c2", error="exit 1", status="failed"),
        ToolCallStep("shop.get_order", {"id": 8}, "mcp__shop__get_order", "c3", status="completed"),
        PermissionStep("edit", False, "policy"),
        UsageStep("m", TokenUsage(20, 5, 25), 0.25),
        MessageStep("assistant", "done"),
    ),
    source="acp",
    agent="claude",
    duration_ms=80.0,
)  # fmt: skip


def seen(trace: Trace = TRACE, **known) -> AssertionContext:
    messages = messages_of(trace)
    return AssertionContext((), "done", messages, agent_trace=trace, has_transcript=bool(messages), **known)


def test_a_summary_counts_what_the_agent_did():
    assert seen().trace_summary.as_json() == {
        "event_count": 7,
        "tool_calls": 4,
        "error_count": 1,
        "llm_call_count": 2,
        "tools": [
            {"name": "skill", "calls": 1, "errors": 0},
            {"name": "shop.get_order", "calls": 2, "errors": 0},
            {"name": "shell", "calls": 1, "errors": 1},
        ],
        "token_usage": {"input": 30, "output": 10, "total": 40, "cached": None, "reasoning": None},
        "cost_usd": 0.75,
        "duration_ms": 80.0,
    }


def test_what_the_target_says_of_its_call_counts_before_the_trace():
    summary = seen(token_usage=TokenUsage(1, 2, 3), cost_usd=0.0, duration_ms=5.0).trace_summary
    assert (summary.token_usage, summary.cost_usd, summary.duration_ms) == (TokenUsage(1, 2, 3), 0.0, 5.0)


def test_a_transcript_without_a_trace_keeps_its_counts():
    messages = (
        Message("user", "x"),
        Message("assistant", "y", tool_calls=(ToolCall("Grep", {"q": 1}),)),
        Message("tool", "z"),
    )
    context = AssertionContext((), "y", messages, cost_usd=0.5)
    summary = context.trace_summary.as_json()
    shown = (summary["event_count"], summary["tool_calls"], summary["error_count"], summary["llm_call_count"])
    assert shown == (4, 1, 0, 1)
    assert summary["tools"] == [{"name": "Grep", "calls": 1, "errors": 0}]
    assert context.trace["events"] == [
        {"type": "message", "role": "user"},
        {"type": "message", "role": "assistant"},
        {"type": "tool_call", "name": "Grep", "arguments": {"q": 1}},
        {"type": "message", "role": "tool"},
    ]
    assert context.trace["provenance"] == {"case_id": "", "finish_reason": None}


def test_the_wire_trace_has_every_step_and_its_origin():
    trace = seen().trace
    types = ["message", "usage", "message", *["tool_call"] * 4, "permission", "usage", "message"]
    assert [event["type"] for event in trace["events"]] == types
    call = trace["events"][4]
    shown = (call["name"], call["native_name"], call["result"])
    assert shown == ("shop.get_order", "mcp__shop__get_order", {"status": "shipped"})
    assert trace["events"][5]["error"] == "exit 1"
    shown = (trace["provenance"]["source"], trace["provenance"]["agent"], trace["provenance"]["partial"])
    assert shown == ("acp", "claude", None)
    assert trace["metrics"] == seen().trace_summary.as_json()


@pytest.mark.parametrize(
    ("assertion", "passed"),
    [
        *((ToolUsed(name), True) for name in ("shell", "Bash", "shop.get_order", "mcp__shop__get_order", "mcp_shop_get_order", "shop.*", "mcp__shop__*")),
        *((ToolUsed(name), False) for name in ("edit", "bank.get_order", "mcp__bank__*", "get_order")),
        *((ToolUsed(Counted(name, min=2, max=2)), True) for name in ("shop.get_order", "mcp__shop__get_order")),
        *((ToolSequence(names), True) for names in (("shop.get_order", "shell"), ("mcp__shop__get_order", "Bash"))),
        *((ToolArgsMatch(Arguments(name, {"id": 8})), True) for name in ("shop.get_order", "mcp__shop__get_order")),
        *((StepCount(StepBounds(min=2, max=2, name=name)), True) for name in ("shop.get_order", "mcp_shop_get_order")),
        *((ToolTrajectory("any_order", {name: 2}), True) for name in ("shop.get_order", "mcp__shop__get_order")),
        *((ToolTrajectory("in_order", expected=(ExpectedCall(name, {"id": 7}),)), True) for name in ("shop.get_order", "mcp__shop__get_order")),
        (ToolTrajectory("in_order", expected=(ExpectedCall("shop.get_order", {"id": 7}, output={"status": "shipped"}),)), True),
        (ToolTrajectory("in_order", expected=(ExpectedCall("bank.get_order"),)), False),
        (ToolCallF1("skill, shop.get_order, shell"), True),
        (ToolCallF1("Skill, mcp__shop__get_order, Bash"), True),
        (SkillUsed("refund"), True),
        (SkillUsed("tax"), False),  # the command failed
        (ExecutionMetrics(max_tool_calls=4, max_llm_calls=2), True),
        (ExecutionMetrics(max_tool_calls=3), False),
        (ExecutionMetrics(max_llm_calls=1), False),
    ],
)  # fmt: skip
def test_assertions_know_a_tool_by_its_native_and_its_canonical_name(assertion, passed):
    grade = assertion.grade(seen())
    assert grade.error is None
    assert grade.passed is passed


@pytest.mark.parametrize(
    "assertion",
    [ToolUsed("a"), ToolSequence(("a",)), ToolCallF1("a"), ToolTrajectory("subset", expected=()), SkillUsed("a"), ExecutionMetrics(max_tool_calls=9)],
)  # fmt: skip
def test_a_partial_trace_gives_no_verdict(assertion):
    trace = Trace((MessageStep("assistant", "done"),), partial="the stream ends early")
    assert assertion.grade(seen(trace)).error.code == "no-data"


def test_why_a_partial_trace_gives_no_verdict():
    grade = ToolUsed("a").grade(seen(Trace((MessageStep("assistant", "x"),), partial="line 3 is no JSON")))
    assert grade.error.message == "the trace is partial, so its tool calls are not all known: line 3 is no JSON"
