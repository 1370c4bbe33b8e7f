"""Session files of coding agents, written by the programs against a local model server, and older ones."""

import json
import random
from pathlib import Path

import pytest

from agentv.extensions.agents.commands.sessions import list_sessions
from agentv.extensions.agents.traces.sessions.claude import read_claude
from agentv.extensions.agents.traces.sessions.codex import read_codex
from agentv.extensions.agents.traces.sessions.copilot import read_copilot
from agentv.extensions.agents.traces.sessions.gemini import read_gemini
from agentv.extensions.agents.traces.sessions.pi import read_pi
from agentv.extensions.agents.traces.sessions.recorder import SessionFile
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, UsageStep
from agentv.model.values.trace_document import document, parse

HOME = Path(__file__).parents[4] / "doubles" / "sessions"
PLACES = {
    "claude": "claude/projects",
    "codex": "codex/sessions",
    "copilot": "copilot/session-state",
    "gemini": "gemini/tmp",
    "pi": "pi/sessions",
}
READ = {"claude": read_claude, "codex": read_codex, "copilot": read_copilot, "gemini": read_gemini, "pi": read_pi}


def sessions(program):
    return {one.identity: one.trace for one in list_sessions(program, HOME / PLACES[program])}


def lines(*rows):
    return SessionFile("".join(json.dumps(row) + "\n" for row in rows).encode())


def said(trace, parent=None):
    return [(step.role, step.text) for step in trace.steps if isinstance(step, MessageStep) and step.parent == parent]


SAMPLES = {
    "claude": ("435ef572-6264-492f-a4c3-a25e218d0945", ["read", "write", "subagent", "shell"]),
    "codex": ("01a2089f-44bb-7820-8fac-b580f8627916", ["shell", "edit", "subagent", "shell"]),
    "copilot": ("8e61b1df-5fdb-4048-8eba-ff82d703ddcb", ["read", "write", "subagent", "shell"]),
    "gemini": ("3cc29937-4e38-472d-974e-f03fee3008a9", ["read", "write", "subagent", "shell"]),
    "pi": ("01a2089f-dcab-7788-b4f3-295b63b5d939", ["read", "write"]),
}
GIVEN = {"claude": (680, 83, 520), "pi": (380, 59, 280)}
"""Tokens that the server gave to the agent itself, with cached ones; Claude Code made one more call."""


@pytest.mark.parametrize("program", SAMPLES)
def test_a_session_of_today(program):
    identity, names = SAMPLES[program]
    trace = sessions(program)[identity]
    assert [call.name for call in trace.tool_calls] == names
    assert (trace.agent, trace.session_id, trace.metadata["project"]) == (program, identity, "/home/user/shop")
    assert said(trace)[0] == ("user", "Write the notes.")
    assert said(trace)[-1] == ("assistant", "The notes have two lines.")
    thoughts = [step.reasoning for step in trace.steps if isinstance(step, MessageStep) and step.reasoning]
    assert [thought.split() for thought in thoughts] == [["The", "notes", "may", "exist."]]
    missing = trace.tool_calls[0]
    assert missing.failed
    assert missing.error
    own = [step for step in trace.usages if step.parent is None]
    counts = tuple(sum(getattr(step.tokens, name) for step in own) for name in ("input", "output", "cached"))
    assert counts == GIVEN.get(program, (520, 74, 380))


@pytest.mark.parametrize("program", ["claude", "copilot", "gemini", "codex"])
def test_a_subagent_is_nested_in_its_call(program):
    trace = sessions(program)[SAMPLES[program][0]]
    call = next(call for call in trace.tool_calls if call.name == "subagent")
    inner = [step for step in trace.steps if step.parent == call.id]
    assert said(trace, call.id)[0] == ("user", "Count the lines of notes.txt")
    assert [step.name for step in trace.tool_calls if step.parent == call.id] == ["shell"]
    if program != "codex":  # it had ended before its subagent
        assert [step.tokens.input for step in inner if isinstance(step, UsageStep)][:2] == [50, 60]


@pytest.mark.parametrize("program", ["claude", "copilot"])
def test_a_denied_permission(program):
    (trace,) = [trace for trace in sessions(program).values() if trace.denials]
    (call,) = trace.tool_calls
    assert (call.name, call.status, len(trace.denials)) == ("shell", "denied", 1)
    assert trace.denials[0].tool == call.native_name


@pytest.mark.parametrize("program", SAMPLES)
def test_what_is_damaged_is_named_by_its_line_and_the_rest_is_read(program, tmp_path):
    identity, names = SAMPLES[program]
    path = next(one.path for one in list_sessions(program, HOME / PLACES[program]) if one.identity == identity)
    rows = path.read_bytes().splitlines(keepends=True)
    rows.insert(3, b'{"type": "half\n')
    trace = READ[program](SessionFile(b"".join(rows)))
    assert trace.partial.startswith("line 4: ")
    assert set(names[:2]) <= {call.name for call in trace.tool_calls}


@pytest.mark.parametrize("program", SAMPLES)
def test_every_beginning_of_a_session_is_read_and_is_partial_before_its_end(program):
    identity, _ = SAMPLES[program]
    path = next(one.path for one in list_sessions(program, HOME / PLACES[program]) if one.identity == identity)
    data = path.read_bytes()
    for end in range(0, len(data), 997):
        trace = READ[program](SessionFile(data[:end]))
        assert isinstance(trace, Failure) or trace.partial, end


@pytest.mark.parametrize("program", SAMPLES)
@pytest.mark.parametrize(
    "data", [b"", b"[]", b"null\n", b"\xff\xfe\n", b'{"type": 1, "message": 2, "data": [], "payload": {"type": []}}\n']
)
def test_what_is_no_session(program, data):
    assert isinstance(READ[program](SessionFile(data)), Failure)


WRONG = [None, 1, -1, 1e308, "", [], {}, "x", [[[]]], {"a": {"b": [1]}}, True, "\ud800", 2.0**60]


def mutated(rng, value):
    """Return the value with some parts missing or of the wrong type."""
    if rng.random() < 0.03:
        return rng.choice(WRONG)
    if isinstance(value, dict):
        return {key: mutated(rng, one) for key, one in value.items() if rng.random() > 0.01}
    return [mutated(rng, one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("program", SAMPLES)
def test_values_of_the_wrong_type_never_raise(program):
    rng = random.Random(program)
    paths = sorted((HOME / program).rglob("*.jsonl"))

    def content(path):
        rows = [mutated(rng, json.loads(line)) for line in path.read_text().splitlines()]
        return "".join(json.dumps(row) + "\n" for row in rows).encode()

    read = 0
    for _ in range(40):
        main = rng.choice(paths)
        trace = READ[program](SessionFile(content(main), {one.name: content(one) for one in paths if one != main}))
        if not isinstance(trace, Failure):
            assert parse(document(trace)).steps == trace.steps or trace.partial
            read += 1
    assert read > 20


def test_claude_with_its_subagents_in_the_same_file():
    def row(uuid, parent, kind, content, *, side=False, **more):
        said = {"type": kind, "message": {"role": kind, "content": content, **more}, "isSidechain": side}
        time = f"2025-08-01T10:00:0{uuid}.000Z"
        return {**said, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": time}

    usage = {"input_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 4, "output_tokens": 1}
    task = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "Look", "description": "d"}}
    trace = read_claude(
        lines(
            {"type": "summary", "summary": "A title", "leafUuid": "7"},
            row("0", None, "user", "<command-name>/clear</command-name>"),
            row("1", None, "user", [{"type": "text", "text": "Go<system-reminder>secret rules</system-reminder>"}]),
            row("2", "1", "assistant", [{"type": "text", "text": "I go."}], id="m1", model="c", usage=usage),
            row("3", "2", "assistant", [task], id="m1", model="c", usage={**usage, "output_tokens": 30}),
            row("4", None, "user", "Look", side=True),
            row("5", "4", "assistant", [{"type": "text", "text": "Seen."}], side=True, id="m2", model="c", usage=usage),
            row("6", "3", "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "Seen."}]),
            row("7", "6", "assistant", "Done.", id="m3", model="c", usage=usage),
        )
    )
    assert trace.partial == ""
    assert said(trace) == [("user", "Go"), ("assistant", "I go."), ("assistant", "Done.")]
    assert said(trace, "t1") == [("user", "Look"), ("assistant", "Seen.")]
    assert [step.tokens.output for step in trace.usages] == [30, 1, 1]
    assert (trace.usages[0].tokens.input, trace.usages[0].tokens.cached) == (10, 5)


def test_claude_that_was_interrupted_and_one_that_was_refused():
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "rm -r ."}}
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": refused}
    trace = read_claude(
        lines(
            claude_user("1", "Go"),
            {"type": "assistant", "uuid": "2", "message": {"id": "m", "content": [call]}},
            claude_user("3", [result]),
            claude_user("4", "[Request interrupted by user for tool use]"),
        )
    )
    assert (trace.tool_calls[0].status, trace.stop_reason, trace.partial) == ("denied", "aborted", "")
    assert said(trace) == [("user", "Go")]


LOOK, ON, WHY = "I look it up.", "Order 7 is refunded.", "the model is overloaded"


def codex_row(kind, **payload):
    return {"timestamp": "2025-10-29T00:59:38.317Z", "type": kind, "payload": payload}


def item(kind, **payload):
    return codex_row("response_item", type=kind, **payload)


def event(kind, **payload):
    return codex_row("event_msg", type=kind, **payload)


def codex_question(text):
    return item("message", role="user", content=[{"type": "input_text", "text": text}])


def codex_message(text):
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}])


def claude_user(uuid, content):
    return {"type": "user", "uuid": uuid, "message": {"content": content}}


def claude_message(text, **more):
    message = {"id": text, "stop_reason": "end_turn", "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "uuid": text, "message": message, **more}


def copilot(kind, **data):
    return {"type": kind, "data": data}


def gemini(identity, kind, content, **more):
    return {"id": identity, "type": kind, "content": content, "timestamp": "2025-09-01T10:00:01Z", **more}


def pi_message(text, reason="stop", **more):
    usage = {"input": 10, "output": 5, "cost": {"total": 0}}
    content = [{"type": "text", "text": text}] if text else []
    message = {"role": "assistant", "content": content, "stopReason": reason, "usage": usage, **more}
    return {"type": "message", "message": message}


BEGUN = {
    "claude": [claude_user("1", "Go"), claude_message(LOOK)],
    "codex": [codex_question("Go"), codex_message(LOOK)],
    "copilot": [copilot("user.message", content="Go"), copilot("assistant.message", content=LOOK)],
    "gemini": [{"sessionId": "s"}, gemini("1", "user", "Go"), gemini("2", "gemini", LOOK)],
    "pi": [{"type": "message", "message": {"role": "user", "content": "Go"}}, pi_message(LOOK)],
}
ENDINGS = {
    "claude": {
        "error": [claude_message(WHY, isApiErrorMessage=True)],
        "aborted": [claude_user("9", "[Request interrupted by user]")],
    },
    "codex": {"error": [event("error", message=WHY), event("task_complete")], "aborted": [event("turn_aborted")]},
    "copilot": {"error": [copilot("session.error", message=WHY)], "aborted": [copilot("abort")]},
    "gemini": {"error": [gemini("3", "error", WHY)], "aborted": [gemini("3", "info", "Request cancelled.")]},
    "pi": {"error": [pi_message("", "error", errorMessage=WHY)], "aborted": [pi_message("", "aborted")]},
}
WENT_ON = {
    "claude": [claude_user("10", "Again"), claude_message(ON)],
    "codex": [codex_message(ON), event("task_complete")],
    "copilot": [copilot("user.message", content="Again"), copilot("assistant.message", content=ON)],
    "gemini": [gemini("4", "user", "Again"), gemini("5", "gemini", ON)],
    "pi": [{"type": "message", "message": {"role": "user", "content": "Again"}}, pi_message(ON)],
}
SAID = {"error": f"the session ended in an error: {WHY}", "aborted": "the session ended without an answer: aborted"}


@pytest.mark.parametrize("program", BEGUN)
@pytest.mark.parametrize("ending", SAID)
def test_a_session_that_ended_in_an_error_or_was_aborted_has_no_answer_unless_it_went_on(program, ending):
    assert READ[program](lines(*BEGUN[program])).unanswered == ""
    ended = [*BEGUN[program], *ENDINGS[program][ending]]
    assert READ[program](lines(*ended)).unanswered == SAID[ending]
    whole = READ[program](lines(*ended, *WENT_ON[program]))
    assert (whole.unanswered, said(whole)[-1]) == ("", ("assistant", ON))


def test_codex_of_a_year_ago():
    def counted(total, last):
        usage = {"input_tokens": last, "cached_input_tokens": 2, "output_tokens": 3, "total_tokens": last + 3}
        return event("token_count", info={"total_token_usage": {"total_tokens": total}, "last_token_usage": usage})

    output = json.dumps({"output": "no such file\n", "metadata": {"exit_code": 1, "duration_seconds": 0.1}})
    trace = read_codex(
        lines(
            codex_row("session_meta", id="s1", cwd="/p", cli_version="0.46.0"),
            codex_question("<environment_context>x"),
            codex_question("Go"),
            event("user_message", message="Go"),
            codex_row("turn_context", model="gpt-5-codex"),
            event("agent_reasoning", text="Hm"),
            item("reasoning", summary=[{"type": "summary_text", "text": "Hm"}]),
            item("function_call", name="shell", arguments='{"command":["cat","x"]}', call_id="c1"),
            counted(13, 10),
            counted(13, 10),
            item("function_call_output", call_id="c1", output=output),
            item("function_call", name="shop__get", arguments="{not json", call_id="c2"),
            item("function_call_output", call_id="c2", output="exec command rejected by user"),
            event("agent_message", message="Done."),
            codex_message("Done."),
            counted(28, 12),
        )
    )
    assert trace.partial == ""
    assert said(trace) == [("user", "Go"), ("assistant", ""), ("assistant", "Done.")]
    assert [(call.name, call.status) for call in trace.tool_calls] == [("shell", "failed"), ("shop__get", "denied")]
    assert trace.tool_calls[0].error == "no such file\n"
    assert (trace.tokens.input, trace.tokens.output, trace.usages[0].model) == (22, 6, "gpt-5-codex")


def test_gemini_of_a_year_ago_is_one_object():
    denied = {"response": {"error": "[Operation Cancelled] Reason: User did not allow tool call"}}
    call = {"id": "c", "name": "run_shell_command", "args": {"command": "ls"}, "status": "cancelled"}
    call |= {"timestamp": "2025-09-01T10:00:02Z", "result": [{"functionResponse": denied}]}
    tokens = {"input": 9, "output": 4, "cached": 1, "thoughts": 2, "tool": 0, "total": 15}
    thoughts = [{"subject": "Plan", "description": "I list."}]
    messages = [
        gemini("1", "user", "Go"),
        gemini("2", "gemini", "Done.", toolCalls=[call], thoughts=thoughts, model="gemini-2.5-pro", tokens=tokens),
        gemini("3", "error", "quota"),
    ]
    document = {"sessionId": "g1", "messages": messages}
    trace = read_gemini(SessionFile(json.dumps(document, indent=2).encode()))
    assert (trace.session_id, trace.tool_calls[0].status, len(trace.denials)) == ("g1", "denied", 1)
    assert trace.steps[1].reasoning == "Plan: I list."
    assert (trace.usages[0].tokens.output, trace.usages[1].error) == (6, "quota")


def test_gemini_that_was_rewound():
    first = [{"sessionId": "g"}, gemini("1", "user", "a"), gemini("2", "gemini", "b"), gemini("3", "user", "c")]
    trace = read_gemini(lines(*first, {"$rewindTo": "3"}, gemini("4", "user", "d"), gemini("5", "gemini", "e")))
    assert [text for _, text in said(trace)] == ["a", "b", "d", "e"]


def test_copilot_without_records_of_single_calls():
    metrics = {"gpt-5": {"usage": {"inputTokens": 9, "outputTokens": 4, "cacheReadTokens": 3}}}
    call = {"toolCallId": "c", "name": "bash", "arguments": '{"command": "false"}'}
    ended = {"result": {"content": "x"}, "shellExecution": {"exitCode": 1}}
    trace = read_copilot(
        lines(
            copilot("session.start", sessionId="c1", copilotVersion="0.0.369"),
            copilot("user.message", content="Go"),
            copilot("assistant.message", content="", toolRequests=[call]),
            copilot("tool.execution_start", toolCallId="c", toolName="bash", arguments={}),
            copilot("tool.execution_complete", toolCallId="c", success=True, **ended),
            copilot("assistant.message", content="Done.", toolRequests=[]),
            copilot("session.shutdown", modelMetrics=metrics),
        )
    )
    shown = [(one.name, one.arguments, one.status) for one in trace.tool_calls]
    assert shown == [("shell", {"command": "false"}, "failed")]
    assert (trace.tokens.input, trace.tokens.cached, trace.partial) == (9, 3, "")


def test_a_result_without_its_call_and_a_subagent_without_its_call():
    result = {"type": "tool_result", "tool_use_id": "gone", "content": "x"}
    session = lines(
        claude_user("1", "Go"),
        claude_user("2", [result]),
        {"type": "assistant", "uuid": "3", "message": {"id": "m", "content": "Done."}},
    )
    other = lines({"type": "user", "uuid": "9", "agentId": "a9", "message": {"content": "Look"}}).data
    trace = read_claude(SessionFile(session.data, {"agent-a9.jsonl": other}))
    assert trace.partial == ("a result belongs to no call: 'gone'; the file of the sub-agent 'a9' belongs to no call")
