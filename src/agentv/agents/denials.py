"""Denials that leave an agent's work undone: the workspace as it was, and no tool elsewhere that was called."""

from __future__ import annotations

from agentv.agents.workspace_files import changed_since
from agentv.model.values.trace import Step, ToolCallStep, Trace

SHOWN_DENIALS = 5


def did_nothing(trace: Trace, root: str, moment: float) -> bool:
    """Whether the agent has changed nothing since a moment: no file of its workspace, nothing by an MCP tool."""
    return not any(map(_did_work, trace.steps)) and not changed_since(root, moment)


def denials_of(trace: Trace) -> str:
    """What was denied, and why, for a message."""
    denied = [f"{one.tool} ({one.reason})" if one.reason else one.tool for one in trace.denials]
    return ", ".join(denied[:SHOWN_DENIALS])


def _did_work(step: Step) -> bool:
    """Whether a step is a completed call of an MCP tool, which works elsewhere than in files."""
    return isinstance(step, ToolCallStep) and step.status == "completed" and "." in step.name
