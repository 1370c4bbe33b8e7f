"""Trials with an agent that prints a stream: false successes, limits, turns, leftover processes and files."""

import asyncio
import json
import time

import pytest
from msgspec.structs import replace

from agentv.extensions.agents.adapters import native as module
from agentv.extensions.agents.adapters.claude import Claude
from agentv.extensions.agents.adapters.codex import Codex
from agentv.extensions.agents.adapters.pi_cli import PiCli
from agentv.model.suite.tools import GatewayAccess, McpServer
from agentv.model.values.message import Message
from agentv.model.values.response import CallFailure, TargetResponse
from doubles.agents import RecordingSandbox
from doubles.asking import answer, call_target, request, spec_of
from doubles.native_agents import STREAMS, printing_settings
from doubles.processes_alive import all_gone, ids_in

RESULT = '{"type":"result","subtype":"success","result":"Done.","is_error":false}\n'


@pytest.fixture
def box(tmp_path):
    """Return a request in a workspace with its own HOME."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return request(
        "Do the task.", workspace_path=str(tmp_path / "work"), sandbox=RecordingSandbox(str(tmp_path / "home"))
    )


def failure(settings, one) -> CallFailure:
    found = answer(settings, one)
    assert isinstance(found, CallFailure), found
    return found


@pytest.mark.parametrize(
    ("settings", "situation", "code"),
    [
        (Claude, "limit", "agent-limit"),
        (Claude, "interrupted", "agent-stopped"),
        (Claude, "api-retry", "agent-api"),
        (Codex, "interrupted", "agent-stopped"),
        (Codex, "denied-command", "permission-denied"),
    ],
)
def test_a_recorded_success_that_is_none_is_an_error_with_its_trace(settings, situation, code, box):
    found = failure(
        printing_settings(settings, situation, **({"permissions": "deny"} if "denied" in situation else {})), box
    )
    assert found.code == code
    assert found.response.trace is not None


@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ({"text": ""}, "agent-stopped", "exit status 0"),
        ({"text": "", "status": 3, "stderr": "boom"}, "agent-stopped", "boom"),
        ({"text": RESULT, "status": 3}, "agent-stopped", "exit status 3"),
        ({"text": RESULT * 2}, "agent-stopped", "more than one result"),
        ({"text": RESULT + '{"type":"assist'}, "agent-stopped", "middle of an event"),
        ({"text": RESULT.replace("false", "true")}, "agent-api", "Done."),
        ({"text": RESULT.replace("false", '"true"')}, "agent-api", "Done."),
        ({"text": RESULT.replace("success", "error_max_turns")}, "agent-limit", "error_max_turns"),
        ({"text": RESULT.replace("success", "error_of_tomorrow")}, "agent-stopped", "Done."),
        ({"bytes_of": 50_000_000, "text": RESULT}, "output-too-large", "more than is allowed"),
    ],
)
def test_a_stream_that_shows_no_success_is_an_error(script, code, says, box):
    found = failure(printing_settings(Claude, script=script), replace(box, timeout_s=60.0))
    assert found.code == code
    assert says in found.message


@pytest.mark.parametrize(
    "line",
    [
        "\xff\xfe garbage",
        "[1, 2]",
        '{"type": "assistant", "message": {"content": [null, 4, {"type": "tool_use", "input": "x"}]}}',
        '{"type": "user", "message": {"content": {"type": "tool_result"}}}',
        '{"type": "result_of_tomorrow", "\udcff": 1}'.encode("utf-8", "replace").decode(),
        "[" * 100_000,
        '{"type": "system", "subtype": "api_retry", "attempt": 1e400, "max_retries": "x"}',
    ],
)
def test_what_it_prints_besides_is_survived(line, box):
    text = line.encode("utf-8").decode("latin-1") if "\xff" not in line else line
    found = answer(printing_settings(Claude, script={"text": f"{text}\n{RESULT}"}), box)
    assert found.output == "Done."


def test_a_trace_is_partial_where_an_event_cannot_be_read(box):
    text = '{"type": ["of tomorrow"]}\n' + (STREAMS / "pi-cli/edit.jsonl").read_text()
    found = answer(printing_settings(PiCli, script={"text": text}), box)
    assert found.trace.partial == "1 event of the agent's stream could not be read"


@pytest.mark.parametrize(("tools", "code"), [(("shop",), None), (("shop", "bank"), "no-tools")])
def test_tools_of_the_case_that_it_does_not_offer_are_an_error(tools, code, box):
    servers = tuple(McpServer(name, command=("true",)) for name in tools)
    found = answer(printing_settings(Claude, "tool"), replace(box, mcp_servers=servers))
    assert getattr(found, "code", None) == code
    assert code is None or "bank" in found.message


def test_its_settings_are_private_files_and_its_key_is_nowhere_in_what_is_kept(box, tmp_path):
    keep = tmp_path / "kept.jsonl"
    text = json.dumps({"type": "assistant", "message": {"id": "1", "content": [{"type": "text", "text": "x"}]}})
    script = {"text": f'{text}\n"secret-token-1 of the trial"\n{RESULT}', "keep": str(keep), "stderr": "secret-token-1"}
    settings = printing_settings(Claude, script=script, api_key="real-key-12345", append_system_prompt="Be brief.")
    found = answer(settings, replace(box, gateway=GatewayAccess("http://127.0.0.1:1", "secret-token-1")))
    assert found.trace is not None
    kept = json.loads(keep.read_text())
    assert kept["stdin"] == "Do the task."
    assert kept["env"]["ANTHROPIC_API_KEY"] == "secret-token-1"
    assert kept["env"]["HOME"] == str(tmp_path / "home")
    assert kept["env"]["CONFINED"] == "yes"
    assert {name: one["mode"] for name, one in kept["files"].items()} == {".agentv/append-system-prompt.md": 0o600}
    assert b"secret-token-1" not in found.trace.native + found.logs["stderr.txt"]
    assert b"***" in found.trace.native
    assert "real-key-12345" not in keep.read_text()


def test_skills_are_copied_to_where_it_reads_them(box, tmp_path):
    skill = tmp_path / "refund"
    skill.mkdir()
    (skill / "SKILL.md").write_text("Refund it.")
    assert isinstance(answer(printing_settings(Claude, "answer", skills=(str(skill),)), box), TargetResponse)
    assert (tmp_path / "home" / ".claude/skills/refund/SKILL.md").read_text() == "Refund it."


def test_a_link_in_place_of_its_settings_is_not_followed(box, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "home" / ".agentv").symlink_to(tmp_path / "outside")
    found = answer(printing_settings(Claude, "answer", append_system_prompt="x"), box)
    assert found.code == "cannot-start"
    assert not list((tmp_path / "outside").iterdir())


async def test_the_turns_of_a_case_resume_one_session(box, tmp_path):
    keep = tmp_path / "kept.jsonl"
    settings = printing_settings(Claude, "two-turns", "two-turns-2", script={"keep": str(keep)})
    talk = (Message("user", "Do it."), Message("assistant", "First."), Message("user", "And more."))

    target = settings.connect(spec_of(settings), None)
    first = await call_target(target, replace(box, turn=1))
    second = await call_target(target, replace(box, turn=2, messages=talk))
    await target.close()
    assert (first.output, second.output) == ("First.", "Second.")
    begun, resumed = map(json.loads, keep.read_text().splitlines())
    assert "--resume" not in begun["argv"]
    assert resumed["argv"][resumed["argv"].index("--resume") + 1] == first.trace.session_id
    assert resumed["stdin"] == "And more."


@pytest.mark.parametrize(
    ("limits", "says"),
    [({"max_turns": 2}, "more than 2 model calls"), ({"max_tool_calls": 1}, "more than 1 tool calls")],
)
def test_an_agent_beyond_its_limits_is_ended_with_its_children(limits, says, box, tmp_path):
    script = {"hang": 60, "child": str(tmp_path / "child")}
    settings = printing_settings(Codex, "edit", script=script)
    began = time.monotonic()
    found = failure(settings, replace(box, timeout_s=40.0, **limits))
    assert time.monotonic() - began < 30.0
    assert found.code == "agent-limit"
    assert says in found.message
    assert found.response.trace.tool_calls
    assert all_gone(ids_in(tmp_path / "child", 1))


def test_an_agent_that_does_not_end_is_ended_in_time(box, tmp_path):
    settings = printing_settings(Claude, script={"text": "", "hang": 60, "child": str(tmp_path / "child")})
    found = failure(settings, replace(box, timeout_s=3.0))
    assert (found.code, "no answer after 3 s" in found.message) == ("agent-limit", True)
    assert all_gone(ids_in(tmp_path / "child", 1))


def test_an_agent_that_lingers_after_its_result_is_ended_and_its_result_counts(box, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "EXIT_S", 0.3)
    settings = printing_settings(Claude, "background", script={"hang": 60, "child": str(tmp_path / "child")})
    found = answer(settings, replace(box, timeout_s=40.0))
    assert found.output == "Started."
    assert all_gone(ids_in(tmp_path / "child", 1))


async def test_an_interrupted_run_keeps_what_it_has_done(box, tmp_path):
    settings = printing_settings(Codex, "limit", script={"hang": 60, "child": str(tmp_path / "child")})

    interruption = asyncio.get_running_loop().create_future()
    seen = []

    def take(activity):
        seen.append(activity)
        if activity.tool_calls == 3 and not interruption.done():
            interruption.set_result(None)

    target = settings.connect(spec_of(settings), None)
    found = await call_target(target, replace(box, timeout_s=40.0, interruption=interruption, on_activity=take))
    await target.close()
    assert found.code == "interrupted"
    assert len(found.response.trace.tool_calls) == 3
    assert [one.last_tool for one in seen][-1] == "shell"
    assert all_gone(ids_in(tmp_path / "child", 1))


async def test_a_cancelled_call_leaves_nothing_behind(box, tmp_path):
    settings = printing_settings(Claude, script={"text": "", "hang": 60, "child": str(tmp_path / "child")})

    target = settings.connect(spec_of(settings), None)
    call = asyncio.ensure_future(call_target(target, replace(box, timeout_s=40.0)))
    await asyncio.to_thread(ids_in, tmp_path / "child", 1)
    call.cancel()
    await asyncio.wait([call])
    await target.close()
    assert call.cancelled()
    assert all_gone(ids_in(tmp_path / "child", 1))
