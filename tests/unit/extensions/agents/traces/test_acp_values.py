"""What agents report over the Agent Client Protocol."""

import pytest

from agentv.extensions.agents.traces.acp import AcpCall, acp_tool_names

RM = {"command": "rm -rf build"}


@pytest.mark.parametrize(
    ("kind", "title", "given", "names"),
    [
        ("execute", "cleanup", RM, ("shell", "cleanup")),
        ("execute", "grep", {"command": "grep x"}, ("shell", "grep")),
        ("execute", "Read the log", {"command": ["cat", "log"]}, ("shell", "Read the log")),
        ("execute", "build (ci MCP Server)", RM, ("shell", "build (ci MCP Server)")),
        ("execute", "build (ci MCP Server)", {"target": "all"}, ("ci.build", "ci.build")),
        ("edit", "refactor", None, ("edit", "refactor")),
        ("edit", "write", None, ("write", "write")),
        ("read", "config", None, ("read", "config")),
        ("search", "glob", None, ("find", "glob")),
        ("delete", "cleanup", None, ("delete", "cleanup")),
        ("fetch", "web_search", None, ("web_search", "web_search")),
        ("read", "mcp__shop__get_order", None, ("shop.get_order", "mcp__shop__get_order")),
        ("other", "cleanup", None, ("cleanup", "cleanup")),
        ("think", "Weigh the options", None, ("think", "Weigh the options")),
        ("other", "", {"server": "shop", "tool": "refund"}, ("shop.refund", "shop.refund")),
        ("edit", "", None, ("edit", "edit")),
    ],
)
def test_a_tool_is_named_by_what_the_call_did(kind, title, given, names):
    found = acp_tool_names("1", (title,), kind, "", given)
    assert (found.name, found.native_name) == names


def test_the_first_title_may_be_the_name_of_the_tool_and_a_name_beside_it_counts_more():
    titles = ("List the files", "bash")
    assert acp_tool_names("1", titles, "execute", "", RM).native_name == "bash"
    assert acp_tool_names("1", titles, "execute", "KillShell", None).name == "KillShell"
    assert acp_tool_names("1", titles, "execute", "run_it", RM).name == "shell"
    assert acp_tool_names("1", titles, "other", "mcp__shop__refund", None).name == "shop.refund"


def test_a_name_in_the_id_counts_where_it_is_known():
    for identity, name in (("run_shell_command-1763890000000", "shell"), ("call-1763890000000", "Run it")):
        call = AcpCall(identity, 0.0)
        call.update({"title": "Run it"}, 1.0)
        assert call.names.name == name


def test_the_files_of_a_call_are_those_of_its_places_arguments_and_diffs():
    call = AcpCall("1", 0.0)
    call.update({"locations": [{"path": "a"}], "rawInput": {"file_path": "b"}}, 1.0)
    call.update({"content": [{"type": "diff", "path": "c", "newText": ""}, {"type": "content"}, 5]}, 2.0)
    assert call.paths == ("a", "c", "b")


TEXT = {"type": "text", "text": "no such order"}


@pytest.mark.parametrize(
    ("update", "result", "error"),
    [
        ({"status": "completed", "rawOutput": {"rows": 2}}, {"rows": 2}, None),
        ({"status": "completed", "content": [{"type": "content", "content": TEXT}]}, "no such order", None),
        ({"status": "completed", "content": [{"type": "diff", "path": "a", "newText": "x"}]}, None, None),
        ({"status": "failed", "rawOutput": [TEXT]}, None, "no such order"),
        ({"status": "failed", "rawOutput": {"why": "denied"}}, None, '{"why":"denied"}'),
        ({"status": "failed"}, None, "the tool failed"),
    ],
)
def test_what_a_tool_gave_is_its_output_else_the_texts_of_its_content(update, result, error):
    call = AcpCall("1", 5.0)
    call.update({"title": "get_order", "rawInput": '{"id": 1}'}, 6.0)
    call.update(update, 7.5)
    step = call.step(cancelled=False)
    assert (step.result, step.error, step.arguments, step.duration_ms) == (result, error, {"id": 1}, 2.5)
