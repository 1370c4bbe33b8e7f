"""`agentv import` of traces and past sessions, `agentv trace`, exports of traces, and those of programs that know
nothing of agentv.
"""

import json
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import pytest
from msgspec.structs import replace

from agentv.extensions.agents.traces.acp import read_acp
from agentv.extensions.agents.traces.atif import atif_of
from agentv.extensions.agents.traces.otlp_export import TraceOrigin, otlp_of, protobuf_of
from agentv.store.files.traces import read
from doubles.traces import WORK
from needs import needs

SUITE = """
name: support
target: {provider: replay, fixtures: ../recorded.jsonl}
tests:
  - id: refund
    input: mend it
    assert:
      - {type: "trajectory:tool-used", value: [Bash, shop.refund]}
      - {type: tool-trajectory, mode: in_order, expected: [{tool: read}, {tool: mcp__shop__refund}]}
      - {type: execution-metrics, max_tool_calls: 4}
"""


@pytest.fixture
def there(project):
    project.write("one.atif.json", json.dumps(atif_of(WORK)))
    project.write("refund.otlp.json", json.dumps(otlp_of([(WORK, TraceOrigin("k"))])))
    project.write("evals/a.eval.yaml", SUITE)
    return project


@pytest.mark.parametrize(("form", "file"), [("atif", "one.atif.json"), ("otlp", "refund.otlp.json")])
def test_a_session_of_another_program_is_graded_without_running_anything(there, form, file):
    done = there.run("import", form, file, "--test-id", "refund", "-o", "recorded.jsonl")
    assert (done.status, done.stderr) == (0, "wrote recorded.jsonl: 1 session\n")
    graded = there.run("eval", "evals")
    assert (graded.status, "1 passed" in graded.stdout + graded.stderr) == (0, True)


def test_the_traces_of_a_run_are_shown_and_exported(there):
    there.run("import", "atif", "one.atif.json", "--test-id", "refund", "-o", "recorded.jsonl")
    there.run("eval", "evals")
    shown = there.run("trace", "show", "last", "refund")
    found = (shown.status, shown.stdout.startswith("refund on replay\n"), "assistant: done" in shown.stdout)
    assert found == (0, True, True)
    wrong = there.run("trace", "show", "last", "refnd")
    assert (wrong.status, "did you mean 'refund'?" in wrong.stderr) == (2, True)
    told = json.loads(there.run("trace", "show", "last", "refund", "--json").stdout)
    assert told["version"] == 1
    figures = json.loads(there.run("trace", "stats", "last", "--json").stdout)
    assert (figures["trials"], figures["measures"]["tokens"]["mean"]) == (1, 40)
    exported = there.run("results", "export", "last", "--format", "otlp", "-o", "out.json")
    assert (exported.status, exported.stderr) == (0, "wrote out.json: 1 trace\n")
    again = there.run("import", "otlp", "out.json")
    assert json.loads(again.stdout)["test_id"] == "refund"
    assert there.run("results", "export", "last", "--format", "atif", "-o", "out.csv").status == 2


AGENT = {"prompts": [[
    {"think": "hm"}, {"say": "I look"},
    {"update": {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "mcp__shop__refund", "rawInput": {"id": 7}}},
    {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", "rawOutput": {"ok": True}}},
    {"ask": {"tool_call_id": "t2", "then": "a.txt"}},
    {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t2", "status": "completed"}},
    {"say": "done"}, {"usage": {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14}},
]]}  # fmt: skip


@pytest.mark.libraries
def test_the_stream_of_an_agent_of_ours_is_imported_as_the_same_trace(project):
    command = [sys.executable, str(Path(__file__).parents[1] / "doubles" / "acp_agent.py"), json.dumps(AGENT)]
    target = {"provider": "acp", "command": command}
    suite = {
        "target": target,
        "workspace": {},
        "sandbox": "none",
        "tests": [{"id": "refund", "input": "mend it", "assert": [{"contains": "done"}]}],
    }
    project.write("a.eval.yaml", json.dumps(suite))
    assert project.run("eval", "a.eval.yaml").status == 0
    (folder,) = project.path.glob(".agentv/results/*/artifacts/*")
    stored, again = read(folder / "trace.json"), read_acp((folder / "acp.jsonl").read_bytes())
    assert again.partial == ""

    def without_times(trace):
        names = ("started_ms", "duration_ms", "reason")
        return [replace(step, **{name: None for name in names if hasattr(step, name)}) for step in trace.steps]

    assert without_times(again) == without_times(stored)
    assert len(again.steps) == 7
    page = project.run("results", "export", "last", "-o", "report.html")
    assert page.status == 0
    content = (project.path / "report.html").read_text()
    assert '"trace":{"path":"artifacts/' in content
    assert '"diff":{"text":"diff --git' in content


def test_a_partial_session_gives_no_verdict_about_calls_also_when_graded_again(there):
    there.write(
        "cut.jsonl", '{"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "done"}}\n{oops\n'
    )
    imported = there.run("import", "acp", "cut.jsonl", "-o", "recorded.jsonl")
    assert (imported.status, "warning: cut.jsonl is partial: line 2: " in imported.stderr) == (0, True)
    entry = '{type: "not-trajectory:tool-used", value: shell}'
    there.write(
        "evals/a.eval.yaml",
        f"target: {{provider: replay, fixtures: ../recorded.jsonl}}\ntests: [{{id: cut, input: x, assert: [{entry}]}}]\n",
    )
    for arguments in (("eval", "evals"), ("eval", "evals", "--regrade", "last")):
        graded = there.run(*arguments)
        assert (graded.status, "no-data" in graded.stdout + graded.stderr) == (3, True), graded.stdout + graded.stderr


SESSIONS = Path(__file__).parents[1] / "doubles" / "sessions"
KEPT = {
    "claude": ("claude/projects", "435ef572-6264-492f-a4c3-a25e218d0945", "Write"),
    "codex": ("codex/sessions", "01a2089f-44bb-7820-8fac-b580f8627916", "exec_command"),
    "copilot": ("copilot/session-state", "8e61b1df-5fdb-4048-8eba-ff82d703ddcb", "create"),
    "gemini": ("gemini/tmp", "3cc29937-4e38-472d-974e-f03fee3008a9", "write_file"),
    "pi": ("pi/sessions", "01a2089f-dcab-7788-b4f3-295b63b5d939", "write"),
}
SESSIONS_SUITE = """
name: notes
target: {{provider: replay, fixtures: ../recorded.jsonl}}
tests:
  - id: notes
    input: Write the notes.
    assert:
      - {{type: contains, value: two lines}}
      - {{type: "trajectory:tool-used", value: {tool}}}
      - {{type: tool-errors, max: 1}}
  - id: notes-wrong
    input: Write the notes.
    assert:
      - {{type: "trajectory:tool-used", value: web_search}}
"""


def import_session(project, program, *arguments):
    return project.run("import", program, *arguments, "--sessions-dir", str(SESSIONS / KEPT[program][0]))


@pytest.mark.parametrize("program", KEPT)
def test_a_past_session_is_graded_without_running_anything(project, program):
    _, identity, tool = KEPT[program]
    done = import_session(project, program, "--session", identity, "--test-id", "notes", "-o", "recorded.jsonl")
    assert (done.status, done.stderr) == (0, "wrote recorded.jsonl: 1 session\n")
    again = import_session(project, program, "--session-id", identity[:14], "--test-id", "notes-wrong")
    assert again.status == 0
    with (project.path / "recorded.jsonl").open("a") as file:
        file.write(again.stdout)
    project.write("evals/a.eval.yaml", SESSIONS_SUITE.format(tool=tool))
    graded = project.run("eval", "evals")
    assert (graded.status, "1 passed" in graded.stdout + graded.stderr) == (1, True), graded.stdout
    assert "1 failed" in graded.stdout + graded.stderr


@pytest.mark.parametrize("program", KEPT)
def test_the_list_is_a_table_newest_first(project, program):
    listed = import_session(project, program, "--list")
    rows = [line.split() for line in listed.stdout.splitlines()]
    assert rows[0] == ["SESSION", "BEGUN", "PROJECT", "TURNS", "FIRST", "PROMPT"]
    assert KEPT[program][1] in {row[0] for row in rows[1:-2]}
    assert all(row[3:] == ["/home/user/shop", "1", "Write", "the", "notes."] for row in rows[1:-2])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("claude",), "agentv import claude takes FILE…, --session ID or --list"),
        (("claude", "a.jsonl", "--list"), "agentv import claude takes FILE…, --session ID or --list"),
        (("acp",), "agentv import acp takes FILE…"),
        (("acp", "--list"), "acp has no directory of sessions"),
        (("otlp", "x.json", "--sessions-dir", "."), "--sessions-dir does not apply to otlp"),
        (("claude", "gone.jsonl"), "cannot read gone.jsonl: No such file or directory"),
        (("claude", "pi.jsonl"), "it reads as pi: agentv import pi pi.jsonl"),
        (("claude", "empty.jsonl"), "the file has no message of a session of claude"),
        (("claude", "--session", "435ef572-6264-492f-a4c3-a25e218d0946"), "did you mean '435ef572-6264-492f-a4c3-a25e218d0945'?"),
        (("claude", "--session", "x"), "no session 'x' of claude in"),
    ],
)  # fmt: skip
def test_wrong_input(project, arguments, said):
    project.write("empty.jsonl", "{}\n")
    shutil.copy(next((SESSIONS / "pi").rglob("*.jsonl")), project.path / "pi.jsonl")
    more = ["--session-state-dir", str(SESSIONS / "claude/projects")] if arguments[0] == "claude" else []
    done = project.run("import", *arguments, *more)
    assert (done.status, said in done.stderr) == (2, True), done.stderr


def test_hostile_text_and_keys_in_a_session(project):
    key = "sk-" + "ant-" + "a1B2" * 8
    rows = [
        {"type": "user", "uuid": "1", "sessionId": "\x1b[2J", "cwd": "/\u202ep", "message": {"content": f"\x1b[31m{key}"}},
        {"type": "assistant", "uuid": "2", "message": {"id": "m", "content": f"The key is {key}."}},
    ]  # fmt: skip
    project.write("kept/p/session.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    listed = project.run("import", "claude", "--list", "--projects-dir", "kept")
    assert "\x1b" not in listed.stdout
    assert "\u202e" not in listed.stdout
    assert key not in listed.stdout
    done = project.run("import", "claude", "kept/p/session.jsonl")
    assert key not in done.stdout
    assert json.loads(done.stdout)["output"] == "The key is [redacted]."


TESTS = Path(__file__).parents[1]
TOOL = [
    {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
    {"key": "gen_ai.tool.name", "value": {"stringValue": "get_order"}},
]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def shop(receiver: int, *, protobuf: bool) -> Iterator[str]:
    """The URL of a server that calls a tool in each request, and sends the span of it where servers send theirs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = self.rfile.read(int(self.headers["Content-Length"])).decode()
            _, trace, parent, _ = self.headers["traceparent"].split("-")
            arguments = {"key": "gen_ai.tool.call.arguments", "value": {"stringValue": question}}
            span = {"traceId": trace, "spanId": "ab" * 8, "parentSpanId": parent, "name": "execute_tool get_order"}
            rows = {"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "attributes": [*TOOL, arguments]}]}]}]}
            body = protobuf_of(rows) if protobuf else json.dumps(rows).encode()
            kind = "application/x-protobuf" if protobuf else "application/json"
            urlopen(Request(f"http://127.0.0.1:{receiver}/v1/traces", body, {"Content-Type": kind})).read()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"It has shipped.")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("protobuf", [pytest.param(True, marks=needs("opentelemetry.proto")), False])
def test_the_spans_of_a_server_are_the_trace_of_the_trial_that_called_it(project, protobuf):
    port = free_port()
    cases = "".join(
        f"  - {{id: c{one}, input: A-{one}, assert: [{{trajectory:tool-args-match: {{name: get_order, args: {{order: A-{one}}}}}}}]}}\n"
        for one in range(8)
    )
    with shop(port, protobuf=protobuf) as url:
        body = '{order: "{{ prompt }}"}'
        target = f"target: {{name: shop, provider: http, url: '{url}', body: {body}, otel: {port}}}\n"
        project.write("a.eval.yaml", f"{target}tests:\n{cases}")
        ended = project.run("eval", "a.eval.yaml", "--workers", "8")
    assert (ended.status, len(project.rows())) == (0, 8), ended.stdout + ended.stderr


@needs("bwrap")
@pytest.mark.parametrize("network", ["host", "loopback"])
def test_a_program_in_a_sandbox_reaches_the_receiver(project, network):
    shutil.copy(TESTS / "cases/valid/cli-sends-spans/agent.py", project.path)
    (project.path / "repo").mkdir()
    project.write("repo/readme.txt", "a shop")
    project.write(
        "a.eval.yaml",
        f"""targets: [{{name: shop, provider: cli, command: [python3, ./agent.py], otel: true}}]
sandbox: bwrap
workspace: {{template: ./repo, network: {network}}}
tests:
  - {{id: one, input: A-1, assert: [{{trajectory:tool-args-match: {{name: get_order, args: {{order: A-1}}}}}}]}}
""",
    )
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 0, ended.stdout + ended.stderr
    assert project.rows()[0]["sandbox"] == "bwrap"
