import pytest

from agentv.extensions.agents.adapters.acp.tool_call import AcpToolCall


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"title": "Bash"}, "shell"),
        ({"title": "mcp__shop__get_order"}, "shop.get_order"),
        ({"title": "get_order (shop MCP Server)"}, "shop.get_order"),
        ({"title": "Tool: shop/get_order"}, "shop.get_order"),
        ({"title": "npm test", "kind": "execute"}, "shell"),
        ({"title": "Read a.py", "kind": "read"}, "read"),
        ({"title": "ls -la", "kind": "execute", "_meta": {"claudeCode": {"toolName": "Bash"}}}, "shell"),
        ({"title": "src/a", "kind": "read"}, "read"),
        ({"title": "a.py", "kind": "read"}, "read"),
        ({"title": "Look it up"}, "Look it up"),
    ],
)
def test_one_name_for_a_tool_whatever_the_agent_calls_it(told, name):
    call = AcpToolCall("1", 0.0)
    call.update(told, 1.0)
    assert call.names.name == name


def test_the_files_of_a_call_are_those_of_its_places_arguments_and_diffs():
    call = AcpToolCall("1", 0.0)
    call.update({"locations": [{"path": "a"}], "rawInput": {"file_path": "b"}}, 1.0)
    call.update({"content": [{"type": "diff", "path": "c", "newText": ""}, {"type": "content"}, 5]}, 2.0)
    assert call.paths == ("a", "c", "b")
