"""`AgentScript`: the next step of each conversation, with the tools that the request offers."""

import json
import re
import subprocess
from dataclasses import replace
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anthropic
import openai
import pytest

from agentv.testing import AgentScript, Answer, Hang, ModelServer, Status, StoppedStream, TokenUsage, use_tool
from agentv.testing.agent_script import read_script, script_from_json


def tool(name, required=(), **properties):
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"name": name, "input_schema": {**schema, "required": list(required)}}


CLAUDE = [
    tool("Bash", ["command"], command="string"),
    tool("Write", ["file_path"], file_path="string", content="string"),
    tool("mcp__shop__get_order", ["order_id"], order_id="string"),
]


def post(url, body, **headers):
    try:
        with urlopen(Request(url, json.dumps(body).encode(), headers)) as reply:
            return reply.status, json.load(reply)
    except HTTPError as error:
        with error as reply:
            return reply.status, json.load(reply)


def ask(server, *said, tools=CLAUDE, key="k"):
    """Return what an agent gets after these messages; each None stands for an answer."""
    turns = [
        {"role": "assistant", "content": "…"} if text is None else {"role": "user", "content": text} for text in said
    ]
    body = {"model": "m", "max_tokens": 9, "messages": turns, "tools": tools}
    status, got = post(f"{server.anthropic}/v1/messages", body, **{"x-api-key": key})
    if status != 200:
        return status, got["error"]["message"]
    block = got["content"][-1]
    return (block["name"], block["input"]) if block["type"] == "tool_use" else block["text"]


STEPS = [use_tool("shell", command="ls"), use_tool("write", path="a.txt", content="x"), "Done."]


def test_each_conversation_has_its_own_place():
    with ModelServer(AgentScript(STEPS)) as server:
        assert ask(server, "one") == ("Bash", {"command": "ls"})
        assert ask(server, "two") == ("Bash", {"command": "ls"})
        assert ask(server, "two") == ("Bash", {"command": "ls"})  # a retry
        assert ask(server, "one", None, "result") == ("Write", {"file_path": "a.txt", "content": "x"})
        assert ask(server, "one", None, "result", None, "result") == "Done."
        assert ask(server, "one", None, "result", None, "result", None, "and then?") == "Done."


def test_faults_come_once_in_each_conversation_and_take_no_place():
    with ModelServer(AgentScript([Status(529), Status(500), STEPS[0], Status(429), "Done."])) as server:
        assert [ask(server, "one")[0] for _ in range(3)] == [529, 500, "Bash"]
        assert ask(server, "two")[0] == 529
        assert ask(server, "one", None, "result")[0] == 429
        assert ask(server, "one", None, "result") == "Done."


def test_a_tool_that_is_not_offered_is_an_error_that_names_those_that_are():
    with ModelServer(AgentScript([use_tool("subagent", prompt="x")])) as server:
        status, message = ask(server, "one")
    assert status == 400
    assert message == ("the request offers no tool for 'subagent'; its tools: Bash, Write, mcp__shop__get_order")


def test_a_cut_stream_holds_a_call_as_it_is_offered():
    with ModelServer(AgentScript([StoppedStream(answer=use_tool("shell", command="ls"))])) as server:
        client = anthropic.Anthropic(base_url=server.anthropic, api_key="k", max_retries=0)
        messages = [{"role": "user", "content": "x"}]
        events = client.messages.create(model="m", max_tokens=9, messages=messages, tools=CLAUDE, stream=True)
        started = [event.content_block for event in events if event.type == "content_block_start"]
    assert [block.name for block in started] == ["Bash"]


def test_arguments_get_the_agents_names_and_what_it_requires():
    view = tool("view", ["path"], path="string")
    bash = tool("bash", ["command", "description"], command="string", description="string")
    edit = tool("edit", ["path", "edits"], path="string", edits="array")
    steps = [use_tool("shell", command="ls"), use_tool("edit", path="a", old="x", new="y"), use_tool("read", path="a")]
    with ModelServer(AgentScript(steps)) as server:
        said = ["Current working directory: /home/me/work\n"]
        tools = [view, bash, edit]
        assert ask(server, *said, tools=tools) == ("bash", {"command": "ls", "description": "step"})
        edits = [{"oldText": "x", "newText": "y"}]
        assert ask(server, *said, None, "", tools=tools) == ("edit", {"path": "/home/me/work/a", "edits": edits})
        assert ask(server, *said, None, "", None, "", tools=tools) == ("view", {"path": "/home/me/work/a"})


def test_files_by_the_shell_where_there_is_nothing_else(tmp_path):
    steps = [
        use_tool("write", path="sub/a.txt", content="it's one\ntwo\n"),
        use_tool("edit", path="sub/a.txt", old="two", new="'three'"),
        use_tool("read", path="sub/a.txt"),
    ]
    turns = ["go"]
    with ModelServer(AgentScript(steps)) as server:
        for _ in steps:
            name, arguments = ask(server, *turns, tools=[tool("bash", command="string")])
            command = arguments["command"]
            done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
            turns += [None, "result"]
    assert (name, done.stdout) == ("bash", "it's one\n'three'\n")


def test_mini_swe_agent_ends_by_a_command():
    said = "To end, run `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`."
    with ModelServer(AgentScript([STEPS[0], "Done."])) as server:
        name, arguments = ask(server, said, None, "result", tools=[tool("bash", command="string")])
    assert name == "bash"
    assert arguments["command"].splitlines()[1:3] == ["COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "Done."]


RESPONSES = [
    {"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {"type": "string"}}}},
    {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
    {"type": "namespace", "name": "mcp__shop", "tools": [{"type": "function", "name": "get_order", "parameters": {}}]},
    {"type": "web_search"},
]


def respond(server, tools, *before):
    client = openai.OpenAI(base_url=server.openai, api_key="k")
    said = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}, *before]
    with client.responses.stream(model="m", input=said, tools=tools) as stream:
        return [event.type for event in stream], stream.get_final_response().output[-1]


def answered(number):
    call = {"type": "function_call", "name": "n", "arguments": "{}", "call_id": str(number)}
    thought = {"type": "reasoning", "id": "rs", "summary": []}
    return [thought, call, {"type": "function_call_output", "call_id": str(number), "output": "ok"}]


def test_codex_gets_namespaces_and_custom_tools():
    steps = [use_tool("shop.get_order", order_id="A1"), use_tool("write", path="a.txt", content="x"), "Done."]
    with ModelServer(AgentScript(steps)) as server:
        _, call = respond(server, RESPONSES)
        assert (call.type, call.namespace, call.name) == ("function_call", "mcp__shop", "get_order")
        assert json.loads(call.arguments) == {"order_id": "A1"}
        names, call = respond(server, RESPONSES, *answered(1))
        assert (call.type, call.name) == ("custom_tool_call", "apply_patch")
        assert call.input == "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch\n"
        assert "response.custom_tool_call_input.delta" in names
        _, message = respond(server, RESPONSES, *answered(1), *answered(2))
        assert message.content[0].text == "Done."


def test_codex_without_patches_gets_one_by_its_shell():
    with ModelServer(AgentScript([use_tool("edit", path="a.txt", old="x", new="y")])) as server:
        _, call = respond(server, RESPONSES[:1])
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+y\n*** End Patch\n"
    assert json.loads(call.arguments) == {"cmd": f"apply_patch <<'PATCH'\n{patch}PATCH"}


def test_codex_that_runs_tools_from_javascript():
    inner = {"type": "custom", "name": "exec", "description": "const { output } = await tools.exec_command({ cmd })"}
    namespace = {"type": "namespace", "name": "functions", "tools": [inner]}
    more = {"type": "additional_tools", "role": "developer", "tools": [namespace]}
    body = {"model": "m", "input": [more, {"type": "message", "role": "user", "content": "go"}]}
    with ModelServer(AgentScript([use_tool("shell", command="ls -l"), "Done."])) as server:
        _, got = post(f"{server.openai}/responses", body)
    (call,) = got["output"]
    assert (call["type"], call["namespace"], call["name"]) == ("custom_tool_call", "functions", "exec")
    assert call["input"] == 'text(await tools.exec_command({"cmd": "ls -l"}))'


def test_codex_searches_for_a_tool_that_it_has_not_declared():
    search = {"type": "tool_search", "execution": "client", "parameters": {}}
    with ModelServer(AgentScript([use_tool("shop.get_order", order_id="A1"), "Done."])) as server:
        _, first = respond(server, [search])
        assert (first.type, first.arguments) == ("tool_search_call", {"query": "shop get order", "limit": 8})
        found = {"type": "tool_search_output", "call_id": first.call_id, "tools": [RESPONSES[2]]}
        asked = {"type": "tool_search_call", "call_id": first.call_id, "arguments": {}}
        _, again = respond(server, [search], asked, {**found, "tools": []})
        assert (again.type, again.call_id) == ("tool_search_call", "search_shop_get_order_1")
        _, call = respond(server, [search], asked, found)
        assert (call.type, call.namespace) == ("function_call", "mcp__shop")


def test_claude_searches_for_a_tool_and_that_takes_no_step():
    search = tool("ToolSearch", query="string")
    with ModelServer(AgentScript([use_tool("shop.get_order", order_id="A1"), "Done."])) as server:
        shown = ask(server, "go", tools=[search])
        assert shown == ("ToolSearch", {"query": "select:mcp__shop__get_order", "max_results": 5})
        block = {"type": "tool_use", "id": "search_shop_get_order_0", "name": "ToolSearch", "input": {}}
        result = {"type": "tool_result", "tool_use_id": block["id"], "content": "found"}
        turns = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [block]},
            {"role": "user", "content": [result]},
        ]
        body = {"model": "m", "max_tokens": 9, "messages": turns, "tools": CLAUDE}
        _, got = post(f"{server.anthropic}/v1/messages", body)
        assert got["content"][0]["name"] == "mcp__shop__get_order"
        searched = [block | {"id": f"search_shop_get_order_{n}"} for n in range(10)]
        turns[1:] = [
            {"role": "assistant", "content": searched},
            {"role": "user", "content": [result | {"tool_use_id": one["id"]} for one in searched]},
        ]
        status, got = post(f"{server.anthropic}/v1/messages", {**body, "tools": [search]})
    assert status == 400
    assert "found no such tool" in got["error"]["message"]


def test_tokens_of_all_replies():
    steps = [replace(STEPS[0], usage=TokenUsage(input=100, output=7, total=107)), Answer("Done.", usage=None)]
    with ModelServer(AgentScript([Status(500), *steps])) as server:
        for _ in range(2):
            ask(server, "one", key="first")
        ask(server, "two", key="second, which is long enough to be real")
        ask(server, "two", key="second, which is long enough to be real")
        ask(server, "two", None, "result", key="first")
        assert server.tokens == TokenUsage(input=200, output=14, total=214, cached=0, reasoning=0)


def test_a_websocket_is_refused_at_once():
    with ModelServer("x") as server:
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        with pytest.raises(HTTPError) as caught:
            urlopen(Request(f"{server.openai}/responses", headers=upgrade))
        with caught.value as reply:
            assert (reply.status, reply.headers["Connection"]) == (426, "close")
        assert server.calls == []


def test_counts_of_tokens_take_no_step():
    messages = {"model": "m", "messages": [{"role": "user", "content": "four"}]}
    contents = {"contents": [{"parts": [{"text": "eightttt"}]}]}
    with ModelServer(["first", "second"]) as server:
        assert post(f"{server.anthropic}/v1/messages/count_tokens", messages) == (200, {"input_tokens": 1})
        counted = post(f"{server.gemini}/v1beta/models/m:countTokens", {"generateContentRequest": contents})
        assert counted == (200, {"totalTokens": 2})
        assert ask(server, "one", tools=[]) == "first"


FILE = """
steps:
  - {tool: shell, command: ls, text: I look., reasoning: "What is there?"}
  - status: 429
    message: wait
    retry_after: 0
  - tools:
      - {tool: write, path: a.txt, content: x}
      - {tool: shop.get_order, arguments: {order_id: A1}}
    usage: {input: 3, output: 4}
  - Done.
when:
  Review: [{text: Fine.}]
side: A title
"""


def test_a_script_in_a_file(tmp_path):
    path = tmp_path / "script.yaml"
    path.write_text(FILE)
    with ModelServer(read_script(path)) as server:
        assert ask(server, "one") == ("Bash", {"command": "ls"})
        assert ask(server, "one", None, "result") == (429, "wait")
        assert ask(server, "one", None, "result") == ("mcp__shop__get_order", {"order_id": "A1"})
        assert ask(server, "one", None, "result", None, "result") == "Done."
        assert ask(server, "Review") == "Fine."
        assert ask(server, "one", tools=[]) == "A title"
        assert server.tokens.total == 15 + 7 + 15 + 15 + 15


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "the script: Expected `array` of length >= 1 - at `$.steps`"),
        ({"steps": ["x"], "stps": []}, "the script: Object contains unknown field `stps`"),
        ([{"txt": "x"}], "step 1 of steps: Object contains unknown field `txt`"),
        ([{"status": "429"}], "step 1 of steps: Expected `int`, got `str` - at `$.status`"),
        ([{"fault": "hangs"}], "step 1 of steps: Invalid enum value 'hangs' - at `$.fault`"),
        ([{"tools": [{"name": "x"}]}], "step 1 of steps: each of 'tools' needs the name of a 'tool'"),
        ({"steps": ["x"], "when": {"a": "x"}}, "the script: Expected `array`, got `str` - at `$.when[...]`"),
    ],
)
def test_what_is_no_script(value, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        script_from_json(value)


def test_faults_in_a_file():
    hang = script_from_json([{"fault": "hang"}])
    assert hang(type("Call", (), {"body": {"messages": []}, "text": ""})()) == Hang()


def test_a_script_needs_steps():
    with pytest.raises(ValueError, match="at least one step"):
        AgentScript("text")
