"""Reading and writing Harbor's trajectories."""

import json
from datetime import UTC, datetime

import atif
import pytest

from agentv.extensions.agents.traces.atif import atif_of, read_atif
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, ToolCallStep, Trace, UsageStep
from agentv.model.values.usage import TokenUsage
from doubles.traces import WORK, mutations

REASONED = {"reasoning_tokens": 1}
LOOKED = {
    "message": "I look",
    "reasoning_content": "hm",
    "tool_calls": [
        {"tool_call_id": "c1", "function_name": "Bash", "arguments": {"command": "ls"}},
        {"tool_call_id": "c2", "function_name": "Task", "arguments": {}},
    ],
    "observation": {
        "results": [
            {"source_call_id": "c1", "content": "a.py"},
            {"source_call_id": "c2", "subagent_trajectory_ref": [{"trajectory_id": "sub"}]},
            {"content": "the terminal was cleared"},
        ]
    },
    "metrics": {"prompt_tokens": 10, "completion_tokens": 4, "cached_tokens": 3, "cost_usd": 0.5, "extra": REASONED},
}
SUB_AGENT = {
    "schema_version": "ATIF-v1.7",
    "trajectory_id": "sub",
    "agent": {"name": "sub", "version": "1", "model_name": "small"},
    "steps": [{"step_id": 1, "source": "agent", "message": "tested", "metrics": {"prompt_tokens": 2}}],
}
ASKED = {"source": "user", "message": [{"type": "text", "text": "mend it"}]}
DOCUMENT = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "terminus-2", "version": "2.0", "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "be kind"},
        {"step_id": 2, "timestamp": "2026-01-01T00:00:00Z", **ASKED},
        {"step_id": 3, "timestamp": "2026-01-01T00:00:02.500Z", "source": "agent", **LOOKED},
    ],
    "subagent_trajectories": [SUB_AGENT],
    "final_metrics": {"total_prompt_tokens": 12},
}


def read(document) -> Trace:
    found = read_atif(json.dumps(document).encode())
    assert isinstance(found, Trace), found
    return found


def test_a_trajectory_with_a_sub_agent():
    atif.Trajectory.model_validate(DOCUMENT)
    trace = read(DOCUMENT)
    assert trace.steps == (
        MessageStep("system", "be kind"),
        MessageStep("user", "mend it", None, 0.0),
        MessageStep("assistant", "I look", "hm", 2500.0),
        UsageStep("m", TokenUsage(10, 4, 14, 3, 1), 0.5, 2500.0),
        ToolCallStep("shell", {"command": "ls"}, "Bash", "c1", "a.py", None, "completed", 2500.0),
        ToolCallStep("subagent", {}, "Task", "c2", "", None, "completed", 2500.0),
        MessageStep("tool", "the terminal was cleared", None, 2500.0),
        MessageStep("assistant", "tested", None, None, "c2"),
        UsageStep("small", TokenUsage(2, None, 2), parent="c2"),
    )
    shown = (trace.source, trace.agent, trace.agent_version, trace.session_id, trace.partial)
    assert shown == ("atif", "terminus-2", "2.0", "s", "")
    assert trace.duration_ms == 2500.0


def test_what_is_written_is_valid_and_reads_back():
    document = atif_of(WORK, datetime(2026, 1, 1, tzinfo=UTC))
    found = atif.Trajectory.model_validate(json.loads(json.dumps(document)))
    shown = (found.final_metrics.total_prompt_tokens, found.final_metrics.total_cost_usd, found.agent.name)
    assert shown == (30, 0.75, "claude")
    again = read(document)
    shown = (again.agent, again.agent_version, again.session_id, again.stop_reason)
    assert shown == ("claude", "2.1", "session-1", "end_turn")
    assert [step.name for step in again.tool_calls] == ["read", "subagent", "shell", "shop.refund"]
    for one, other in zip(again.steps, WORK.steps, strict=True):
        assert one == other, "each step is read back"


def test_a_time_beyond_the_calendar_is_not_written():
    far = Trace((MessageStep("user", "hi", started_ms=1e15), MessageStep("user", "ho", started_ms=0.0)))
    first, second = atif_of(far, datetime(2026, 1, 1, tzinfo=UTC))["steps"]
    assert ("timestamp" in first, second["timestamp"]) == (False, "2026-01-01T00:00:00.000Z")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"steps": [{"source": "alien"}, {"source": "agent", "message": "x"}]}, "step 1 has no known 'source'"),
        ({"continued_trajectory_ref": "next.json"}, "it is continued in another file"),
        ({"subagent_trajectories": []}, "the trajectory of a sub-agent is not embedded"),
        ({"steps": [{"source": "agent", "message": "x", "tool_calls": [{"arguments": {}}]}]}, "a tool call has no 'function_name'"),
    ],
)  # fmt: skip
def test_what_is_missing_makes_the_trace_partial(change, said):
    assert read({**DOCUMENT, **change}).partial == said


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the trajectory cannot be read: "),
        (b"[" * 9999, "the trajectory cannot be read: it is nested"),
        (b"[]", "'schema_version' must be ATIF-v1.0 to ATIF-v1.8, found nothing"),
        (b'{"schema_version": "ATIF-v2.0", "steps": []}', "'schema_version' must be ATIF-v1.0 to ATIF-v1.8, found 'ATIF-v2.0'"),
        (b'{"schema_version": "ATIF-v1.4", "steps": []}', "the trajectory has no steps"),
        (b'{"schema_version": "ATIF-v1.4", "steps": [7]}', "the trajectory has no steps: step 1 has no known 'source'"),
    ],
)  # fmt: skip
def test_nothing_to_read_is_a_failure(data, said):
    found = read_atif(data)
    assert found.message.startswith(said)


@pytest.mark.parametrize("junk", [None, True, 7, -1, 1e308, "x", [], {}, [[]], {"a": None}, 10**30])
def test_no_value_of_a_wrong_type_raises(junk):
    for mutated in mutations(DOCUMENT, junk):
        assert isinstance(read_atif(json.dumps(mutated).encode()), Trace | Failure)
