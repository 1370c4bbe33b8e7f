"""A trace with a step of every kind."""

from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, UsageStep
from agentv.model.values.usage import TokenUsage

WORK = Trace(
    steps=(
        MessageStep("system", "be kind", None, 0.0),
        MessageStep("user", "mend it", None, 0.0),
        UsageStep("m-1", TokenUsage(10, 5, 15, 3, 2), 0.25, 0.0, 100.0),
        MessageStep("assistant", "I look <b>", "hm", 100.0),
        ToolCallStep("read", {"path": "a.py"}, "Read", "t1", "x = 1", None, "completed", 110.0, 5.0),
        ToolCallStep("subagent", {"prompt": "test"}, "Task", "t2", "passed", None, "completed", 120.0, 80.0),
        ToolCallStep("shell", {"command": "pytest"}, "Bash", "t3", None, "exit 1", "failed", 130.0, 50.0, "t2"),
        ToolCallStep("shop.refund", {"id": 7}, "mcp__shop__refund", "t4", None, None, "denied", 210.0, None),
        PermissionStep("shop.refund", False, "policy", 210.0),
        UsageStep("m-1", TokenUsage(20, 5, 25, 0, 0), 0.5, 220.0, 30.0),
        MessageStep("assistant", "done", None, 250.0),
    ),
    source="acp",
    agent="claude",
    agent_version="2.1",
    session_id="session-1",
    stop_reason="end_turn",
    duration_ms=250.0,
)


def mutations(value, junk):
    """Yield copies of the value, each with one part replaced."""
    yield junk
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        for inner in mutations(value[key], junk):
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = inner
            yield copy
