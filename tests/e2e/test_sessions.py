"""`agentv import claude|codex|copilot|gemini|pi`, as a person runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

SESSIONS = Path(__file__).parents[1] / "doubles" / "sessions"
KEPT = {
    "claude": ("claude/projects", "435ef572-6264-492f-a4c3-a25e218d0945", "Write"),
    "codex": ("codex/sessions", "01a2089f-44bb-7820-8fac-b580f8627916", "exec_command"),
    "copilot": ("copilot/session-state", "8e61b1df-5fdb-4048-8eba-ff82d703ddcb", "create"),
    "gemini": ("gemini/tmp", "3cc29937-4e38-472d-974e-f03fee3008a9", "write_file"),
    "pi": ("pi/sessions", "01a2089f-dcab-7788-b4f3-295b63b5d939", "write"),
}
SUITE = """
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
    project.write("evals/a.eval.yaml", SUITE.format(tool=tool))
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
    more = ["--sessions-dir", str(SESSIONS / "claude/projects")] if arguments[0] == "claude" else []
    done = project.run("import", *arguments, *more)
    assert (done.status, said in done.stderr) == (2, True), done.stderr


def test_what_is_damaged_is_named_and_the_session_is_partial(project):
    rows = next((SESSIONS / "claude").rglob("435ef572*.jsonl")).read_text().splitlines(keepends=True)
    project.write("session.jsonl", "".join([*rows[:2], "{half\n", *rows[2:]]))
    done = project.run("import", "claude", "session.jsonl")
    assert done.stderr.startswith("warning: session.jsonl is partial: line 3: ")
    assert json.loads(done.stdout)["trace"]["partial"].startswith("line 3: ")


def test_hostile_text_and_keys_in_a_session(project):
    key = "sk-" + "ant-" + "a1B2" * 8
    rows = [
        {"type": "user", "uuid": "1", "sessionId": "\x1b[2J", "cwd": "/\u202ep", "message": {"content": f"\x1b[31m{key}"}},
        {"type": "assistant", "uuid": "2", "message": {"id": "m", "content": f"The key is {key}."}},
    ]  # fmt: skip
    project.write("kept/p/session.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    listed = project.run("import", "claude", "--list", "--sessions-dir", "kept")
    assert "\x1b" not in listed.stdout
    assert "\u202e" not in listed.stdout
    assert key not in listed.stdout
    done = project.run("import", "claude", "kept/p/session.jsonl")
    assert key not in done.stdout
    assert json.loads(done.stdout)["output"] == "The key is [redacted]."
