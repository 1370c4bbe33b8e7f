"""Calls of tools and their results."""

from __future__ import annotations

from agentv.model.values.message import Message
from agentv.targets.model_api.tool_calls import functions_in, tool_steps


def results(*messages: Message) -> list[str | None]:
    """The tools whose calls the results answer."""
    return [step.result_of and step.result_of.name for step in tool_steps(messages) if step.message.role == "tool"]


def test_functions_of_openai_are_told_from_tools_of_a_providers_own():
    own, strange = {"google_search": {}}, {"type": "function", "function": "no object"}
    function = {"name": "find"}
    assert functions_in([own, {"type": "function", "function": function}, strange, "text"]) == (
        [function],
        [own, strange, "text"],
    )
