"""`agentv import` of traces and past sessions, `agentv trace`, and trace exports, also from programs without agentv."""

import json
import shutil
from pathlib import Path

import pytest

from agentv.extensions.agents.traces.atif import atif_of
from agentv.extensions.agents.traces.otlp_export import TraceOrigin, otlp_of
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
    there.run("trace", "show", "last", "refnd", status=2, says="did you mean 'refund'?")
    told = json.loads(there.run("trace", "show", "last", "refund", "--json").stdout)
    assert told["version"] == 1
    figures = json.loads(there.run("trace", "stats", "last", "--json").stdout)
    assert (figures["trials"], figures["measures"]["tokens"]["mean"]) == (1, 40)
    exported = there.run("results", "export", "last", "--format", "otlp", "-o", "out.json")
    assert (exported.status, exported.stderr) == (0, "wrote out.json: 1 trace\n")
    again = there.run("import", "otlp", "out.json")
    assert json.loads(again.stdout)["test_id"] == "refund"
    assert there.run("results", "export", "last", "--format", "atif", "-o", "out.csv").status == 2


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
        (("acp",), "agentv import acp takes FILE… alone"),
        (("acp", "--list"), "agentv import acp takes FILE… alone"),
        (("otlp", "x.json", "--sessions-dir", "."), "agentv import otlp takes FILE… alone"),
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
    project.run("import", *arguments, *more, status=2, says=said)


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
    project.run("eval", "a.eval.yaml", status=0)
    assert project.rows()[0]["sandbox"] == "bwrap"
