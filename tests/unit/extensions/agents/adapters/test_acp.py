import asyncio
import json
import os
import signal
import sys
import time
from contextlib import suppress

import pytest

from agentv.extensions.agents.adapters.acp import Acp
from agentv.extensions.agents.adapters.settings import McpServerSettings
from agentv.model.suite.tools import McpServer
from agentv.model.values.message import ImageBlock, Message, TextBlock
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.trace import MessageStep, PermissionStep
from agentv.registry.fields import Command
from doubles.agents import acp, call
from doubles.asking import answer, request, spec_of
from doubles.processes_alive import all_gone, ids_in


def at(directory, **others):
    return request(workspace_path=str(directory), **others)


def failure(settings, one=None):
    found = answer(settings, one)
    assert isinstance(found, Failure), found
    return found


def said(settings, one=None):
    found = answer(settings, one)
    assert isinstance(found, TargetResponse), found
    return found


def gone(directory):
    """Whether the agent has ended; its child in another session is killed here, unless the parent process already
    did."""
    agent, child = (directory / "pids").read_text().split()
    with suppress(ProcessLookupError):
        os.kill(int(child), signal.SIGKILL)
    return all_gone([agent])


def costs(amount, currency="USD"):
    """Return a step that reports the cost of the session so far."""
    cost = {"amount": amount, "currency": currency}
    return {"update": {"sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": cost}}


def test_the_answer_is_the_last_message_and_all_updates_are_the_trace():
    steps = [{"think": "hm"}, {"say": "Let me "}, {"say": "look."}, call(rawInput={"command": "ls"}, rawOutput="a.txt")]
    found = said(acp(*steps, {"say": "It is a.txt."}))
    assert found.output == "It is a.txt."
    assert found.finish_reason == "end_turn"
    shown = [(one.role, one.text) for one in found.messages]
    assert shown == [("assistant", "Let me look."), ("assistant", "It is a.txt.")]
    shown = [(one.name, one.arguments, one.output) for one in found.messages[0].tool_calls]
    assert shown == [("shell", {"command": "ls"}, "a.txt")]
    trace = found.trace
    assert (trace.source, trace.agent, trace.agent_version) == ("acp", "scripted", "1.2.3")
    assert (trace.session_id, trace.stop_reason) == ("session-1", "end_turn")
    assert trace.metadata["protocol_version"] == 1
    assert trace.metadata["turns"] == 2
    asked, thought, used, last = trace.steps
    assert (asked.role, asked.text) == ("user", "hello")
    assert (thought.text, thought.reasoning) == ("Let me look.", "hm")
    assert (used.native_name, used.status, used.evidence) == ("Bash", "completed", "agent")
    assert asked.started_ms <= thought.started_ms <= used.started_ms <= last.started_ms <= found.duration_ms


def test_a_file_beside_the_eval_file_is_found_from_the_workspace(tmp_path):
    (tmp_path / "agent.sh").write_text("echo from $PWD >&2; exit 3")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for command in (Command(("sh", "agent.sh"), cwd=str(tmp_path)), Command(shell="sh agent.sh", cwd=str(tmp_path))):
        assert f"from {workspace}" in failure(Acp(command), at(workspace)).message


async def test_turns_are_one_session():
    settings = acp(prompts=[[{"say": "first"}], [{"say": "{prompts} {asked}"}]])
    one = request("a", turn=1)
    talk = (Message("user", "a"), Message("assistant", "first"), Message("user", "b"))
    two = request("a b", messages=talk, turn=2)

    target = settings.connect(spec_of(settings), None)
    first, second = await target.answer(one), await target.answer(two)
    await target.end_session(two)
    third = await target.answer(two)
    await target.close()
    assert second.output == "2 ['a', 'b']"
    assert [one.text for one in second.trace.steps] == ["b", "2 ['a', 'b']"]
    assert b"initialize" in first.trace.native
    assert b"initialize" not in second.trace.native
    assert (third.code, third.retryable) == ("no-session", False)


def test_usage_and_cost_where_the_agent_gives_them():
    counts = {"totalTokens": 30, "inputTokens": 20, "outputTokens": 10, "cachedReadTokens": 5, "thoughtTokens": 1}
    found = said(acp({"say": "yes"}, costs(0.25), {"usage": counts}))
    usage = found.token_usage
    assert (usage.total, usage.input, usage.output, usage.cached, usage.reasoning) == (30, 20, 10, 5, 1)
    assert found.cost_usd == 0.25
    last = found.trace.steps[-1]
    assert (last.tokens, last.cost_usd) == (usage, 0.25)


def test_unknown_usage_is_unknown_and_another_currency_is_no_dollars():
    found = said(acp({"say": "yes"}, costs(0.25, "EUR")))
    assert (found.token_usage, found.cost_usd) == (None, None)


async def test_the_cost_of_a_turn_is_what_it_added():
    settings = acp(prompts=[[{"say": "a"}, costs(0.25)], [{"say": "b"}, costs(1.0)]])

    target = settings.connect(spec_of(settings), None)
    found = [await target.answer(request(turn=turn)) for turn in (1, 2)]
    await target.close()
    assert [one.cost_usd for one in found] == [0.25, 0.75]


def test_the_model_is_set_by_the_agents_option():
    choices = [{"value": "small", "name": "S"}, {"value": "large", "name": "L"}]
    option = {"type": "select", "id": "m", "name": "Model", "category": "model", "currentValue": "small"}
    found = said(acp({"say": "{asked}"}, options=[{**option, "options": choices}], model="large"))
    assert found.output == "['m=large', 'hello']"
    assert found.metadata["model"] == "large"
    assert failure(acp({"say": "x"}, model="large")).code == "agent-protocol"


def test_pictures_go_to_agents_that_take_them(tmp_path):
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    asked = request(messages=(Message("user", (TextBlock("look"), ImageBlock("a.png", str(picture)))),))
    assert failure(acp({"say": "x"}), asked).code == "bad-picture"
    assert "image" in said(acp({"say": "{asked}"}, begin={"image": True}), asked).output


# --- false passes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"update": {"sessionUpdate": "tool_call", "title": "Bash"}},
        {"update": {"title": "Bash"}},
        {"update": {"sessionUpdate": "agent_message_chunk"}},
        {},
    ],
)
def test_an_update_that_says_too_little_breaks_the_answer(params):
    line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params})
    assert failure(acp({"say": "done"}, {"print": line})).code == "agent-protocol"


CUT = """import sys; sys.stdin.readline(); sys.stdout.write('{"jsonrpc": "2.0", "id": 0, "res')"""
FLOOD = "import sys\nwhile True: sys.stdout.write('x' * 1000000)"


@pytest.mark.parametrize(
    ("settings", "code", "says"),
    [
        (Acp(Command(("no-such-agent",))), "cannot-start", ""),
        (Acp(Command((sys.executable, "-c", CUT))), "agent-protocol", "in the middle of a message"),
        (Acp(Command((sys.executable, "-c", FLOOD))), "output-too-large", ""),
        (acp(begin={"version": 2}), "agent-protocol", "version 2"),
    ],
)
def test_a_program_that_does_not_speak_the_protocol(settings, code, says):
    found = failure(settings)
    assert (found.code, says in found.message) == (code, True)


def test_noise_on_stdout_is_counted_and_kept():
    found = said(acp({"print": "Loaded cached credentials."}, {"say": "yes"}, begin={"print": "hello there"}))
    assert found.output == "yes"
    assert found.metadata["noise_lines"] == 2
    assert b"Loaded cached credentials." in found.trace.native


def test_an_error_of_the_agent_is_no_answer():
    found = failure(acp({"say": "trying"}, {"error": [-32603, "Internal error"]}))
    assert found.code == "agent-api"
    assert "no route to the model" in found.message
    assert found.response.output == "trying"


def test_authentication_only_where_it_takes_nothing():
    method = {"type": "env_var", "id": "key", "name": "Key", "vars": [{"name": "MODEL_KEY"}]}
    begin = {"auth_methods": [{"id": "login", "name": "Log in"}, method]}
    found = failure(acp({"say": "yes"}, begin=begin))
    assert (found.code, "login, key" in found.message) == ("agent-api", True)
    assert said(acp({"say": "{agent.authenticated}"}, begin=begin), request(env={"MODEL_KEY": "x"})).output == "key"
    assert said(acp({"say": "{agent.authenticated}"}, begin=begin, auth_method="login")).output == "login"


@pytest.mark.parametrize(
    ("reason", "code"),
    [("max_tokens", "agent-limit"), ("max_turn_requests", "agent-limit"), ("cancelled", "agent-stopped")],
)
def test_an_agent_that_stopped_has_no_answer(reason, code):
    found = failure(acp({"say": "half of"}, {"stop": reason}))
    assert found.code == code
    assert found.response.output == "half of"
    assert found.response.trace.stop_reason == reason


def test_a_refusal_is_no_answer_whatever_the_agent_said_before():
    for words in ("No.", ""):
        refused = failure(acp({"say": words}, {"stop": "refusal"}))
        assert (refused.code, refused.response.output) == ("refused", words)


def test_the_text_of_another_session_is_no_answer_and_its_tool_calls_are_work():
    words = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "refunded"}}
    told = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Bash", "status": "completed"}
    stray = [
        {"print": json.dumps({"method": "session/update", "params": {"sessionId": "other", "update": one}})}
        for one in (words, told)
    ]
    found = said(acp({"say": "Nothing was done."}, *stray))
    assert found.output == "Nothing was done."
    assert [one.name for one in found.trace.tool_calls] == ["shell"]


# --- limits --------------------------------------------------------------------------------------------------------


def test_too_many_tool_calls_end_it_and_keep_the_trace():
    steps = [call(f"call-{number}") for number in range(3)]
    found = failure(acp(*steps, {"hang": "until cancelled"}, max_tool_calls=2))
    assert found.code == "agent-limit"
    assert "max_tool_calls" in found.message
    assert len(found.response.trace.tool_calls) == 3
    assert len(said(acp(*steps, {"say": "x"}, max_tool_calls=3)).trace.tool_calls) == 3


async def test_time_is_over(tmp_path):
    settings = acp({"say": "wait"}, {"hang": "child"})

    target = settings.connect(spec_of(settings), None)
    began = time.monotonic()
    found = await target.answer(at(tmp_path, timeout_s=4))
    took = time.monotonic() - began
    await target.close()
    assert took < 4
    assert found.code == "agent-limit"
    assert found.response.output == "wait"
    assert gone(tmp_path)


def test_one_that_never_begins():
    assert failure(acp(begin={"hang": True}), request(timeout_s=2)).code == "agent-limit"


async def test_a_cancelled_call_leaves_nothing(tmp_path):
    settings = acp({"hang": "deaf"})

    target = settings.connect(spec_of(settings), None)
    task = asyncio.create_task(target.answer(at(tmp_path)))
    await asyncio.to_thread(ids_in, tmp_path / "pids", 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gone = all_gone((tmp_path / "pids").read_text().split())
    await target.close()
    assert gone


# --- permissions ---------------------------------------------------------------------------------------------------

EDIT = {"ask": {"toolCallId": "1", "rawInput": {"path": "a.txt"}, "then": "a.txt"}}


def test_permissions_are_answered_by_policy_and_recorded(tmp_path):
    found = said(acp(EDIT, {"say": "{agent.outcome}"}), at(tmp_path))
    assert found.output == "yes"
    (step,) = [one for one in found.trace.steps if isinstance(one, PermissionStep)]
    assert (step.tool, step.allowed, step.reason) == ("edit", True, "permissions: allow")


def test_success_after_a_denial_without_any_work_is_an_error(tmp_path):
    found = failure(acp(EDIT, {"say": "Done!"}, permissions="deny"), at(tmp_path))
    assert found.code == "permission-denied"
    assert "edit (permissions: deny)" in found.message
    assert found.response.output == "Done!"
    assert found.response.trace.tool_calls[0].status == "denied"


def test_a_denial_is_graded_where_the_target_says_so_or_something_was_done(tmp_path):
    found = said(acp(EDIT, {"say": "{agent.outcome}"}, permissions="deny", on_denied="grade"), at(tmp_path))
    assert (found.output, len(found.trace.denials)) == ("no", 1)
    assert said(acp(EDIT, {"file": ["b.txt", "x"]}, {"say": "ok"}, permissions="deny"), at(tmp_path)).output == "ok"
    shop = call("2", title="mcp__shop__refund")
    assert said(acp(EDIT, shop, {"say": "ok"}, permissions="deny"), at(tmp_path)).output == "ok"


def test_an_agent_that_offers_no_way_to_allow(tmp_path):
    asked = {"ask": {"toolCallId": "1", "options": ["reject_once"]}}
    found = said(acp(asked, {"say": "{agent.outcome}"}, on_denied="grade"), at(tmp_path))
    assert found.output == "cancelled"
    assert found.trace.denials[0].reason == "the agent offers no option that allows it"


# --- MCP servers ---------------------------------------------------------------------------------------------------


def test_mcp_servers_of_the_case_and_the_target_are_handed_over_and_their_secrets_are_not_kept():
    given = McpServer("shop", command=("relay", "x"), env={"TOKEN": "s3cret"})
    own = {"docs": McpServerSettings(url="http://127.0.0.1:1/mcp", headers={"Authorization": "h1dden"})}
    settings = acp({"say": "{agent.servers}"}, begin={"http": True}, mcp=own)
    found = said(settings, request(mcp_servers=(given,)))
    assert "s3cret" in found.output
    assert "h1dden" in found.output
    asked = found.trace.native.splitlines()[2]
    assert b"session/new" in asked
    assert b"s3cret" not in asked
    assert b"h1dden" not in asked


def test_an_agent_that_takes_no_servers_over_http():
    servers = (McpServer("shop", "http", url="http://127.0.0.1:1/mcp"),)
    found = failure(acp({"say": "x"}), request(mcp_servers=servers))
    assert (found.code, "'shop'" in found.message) == ("no-tools", True)


def test_messages_of_one_answer_are_told_apart_by_their_ids():
    def chunk(identity, text):
        content = {"type": "text", "text": text}
        return {"update": {"sessionUpdate": "agent_message_chunk", "messageId": identity, "content": content}}

    found = said(acp(chunk("1", "a"), chunk("1", "b"), chunk("2", "c")))
    assert [one.text for one in found.trace.steps if isinstance(one, MessageStep)] == ["hello", "ab", "c"]
