"""Calls of tools and their results."""

from __future__ import annotations

from agentv.model.values.message import Message, ToolCall
from agentv.targets.model_api.tool_calls import GENERATED_ID, functions_in, tool_steps


def results(*messages: Message) -> list[str | None]:
    """The tools whose calls the results answer."""
    return [step.result_of and step.result_of.name for step in tool_steps(messages) if step.message.role == "tool"]


def asks(*calls: ToolCall) -> Message:
    return Message("assistant", "", tool_calls=calls)


LOOK, FIND, AGAIN = ToolCall("look", {}), ToolCall("find", {}, "f1"), ToolCall("look", {"again": True}, "l2")


def test_a_call_without_an_id_gets_one_and_no_two_are_alike():
    made = [call.id for step in tool_steps([asks(LOOK, LOOK), asks(LOOK, FIND)]) for call in step.calls]
    assert len(set(made)) == 4
    assert made[3] == "f1"
    assert all(one.startswith(GENERATED_ID) for one in made[:3])


def test_results_come_in_the_order_of_the_calls():
    assert results(asks(LOOK, FIND), Message("tool", "a"), Message("tool", "b")) == ["look", "find"]


def test_a_result_may_name_its_call_by_tool_or_by_id():
    assert results(asks(LOOK, FIND), Message("tool", "b", name="find"), Message("tool", "a")) == ["find", "look"]
    found = [step.result_of for step in tool_steps([asks(LOOK, AGAIN), Message("tool", "a", name="l2")])]
    assert found[1] == AGAIN


def test_a_call_is_answered_once_and_a_result_without_a_call_answers_none():
    assert results(Message("tool", "a", name="look"), asks(LOOK), Message("tool", "b"), Message("tool", "c")) == [
        None,
        "look",
        None,
    ]


def test_functions_of_openai_are_told_from_tools_of_a_providers_own():
    own, strange = {"google_search": {}}, {"type": "function", "function": "no object"}
    function = {"name": "find"}
    assert functions_in([own, {"type": "function", "function": function}, strange, "text"]) == (
        [function],
        [own, strange, "text"],
    )
