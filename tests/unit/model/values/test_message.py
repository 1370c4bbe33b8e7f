import pytest

from agentv.model.values.message import (
    DocumentBlock,
    Message,
    TextBlock,
    ToolCall,
    attached_files,
    messages_from_json,
    prompt_text,
)


def test_a_pdf_is_its_path_in_a_prompt_and_in_a_row():
    message = Message("user", (TextBlock("Sum up:"), DocumentBlock("./a.pdf", "/x/a.pdf", "0")))
    assert prompt_text([message]) == "Sum up:\n\n[file: ./a.pdf]"
    assert message.as_json()["content"][1] == {"type": "file", "value": "./a.pdf", "path": "/x/a.pdf"}
    assert list(attached_files([message])) == ["/x/a.pdf"]


DELETES = {"name": "delete", "input": {"id": 7}}


def calls(**row):
    (message,) = messages_from_json([{"role": "assistant", "content": "", **row}])
    return message.tool_calls


@pytest.mark.parametrize(
    "row",
    [
        {"tool_calls": [DELETES]},
        {"toolCalls": [{"toolName": "delete", "args": {"id": 7}}]},
        {"tool_calls": [{"type": "function", "function": {"name": "delete", "arguments": '{"id": 7}'}}]},
        {"function_call": {"name": "delete", "arguments": '{"id": 7}'}},
        {"tool_call": [{"tool": "delete", "arguments": {"id": 7}}]},
        {"content": [{"type": "text", "text": "On it"}, {"type": "tool_use", **DELETES}]},
    ],
)
def test_a_call_is_read_however_it_is_written(row):
    assert calls(**row) == (ToolCall("delete", {"id": 7}),)


@pytest.mark.parametrize(
    "row",
    [
        {"tool_calls": ["delete"]},
        {"tool_calls": [{"arguments": {}}]},
        {"tool_calls": "delete"},
        {"tool_calls": [{"function": "delete"}]},
        {"content": [{"type": "tool_use", "input": {}}]},
    ],
)
def test_a_call_that_cannot_be_read_is_not_passed_over(row):
    with pytest.raises(ValueError, match=r"a tool call|must be a list of calls"):
        calls(**row)


def test_blocks_of_text_stay_beside_calls():
    (message,) = messages_from_json(
        [{"role": "assistant", "content": [{"type": "text", "text": "On it"}, {"type": "tool_use", **DELETES}]}]
    )
    assert message.text == "On it"
