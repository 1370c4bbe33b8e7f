"""What each command does, prints and exits with."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyte
import pytest

from e2e.command import AGENTV, Project
from needs import needs

EXAMPLES = Path(__file__).parents[2] / "examples"
SUITE = """\
target: echo
tests:
  - {id: good, input: hello, assert: [contains: hello]}
  - {id: bad, input: "hi \\e[2J\\e]0;owned\\a there", assert: [contains: bye, contains: hi]}
  - {id: broken, input: hello, assert: [{type: cost, threshold: 1}]}
"""


@pytest.mark.parametrize(
    ("path", "cases"),
    [
        ("quickstart", 5),
        ("templates/evals/EVAL.yaml", 2),
        ("eval-cases/evals/cases.yaml", 5),
        ("custom-assertions/evals/suite.yaml", 2),
    ],
)
def test_the_examples_are_green(project, path, cases):
    shutil.copytree(EXAMPLES, project.path / "examples", ignore=shutil.ignore_patterns("results"))
    ended = project.run("eval", f"examples/{path}")
    assert ended.status == 0, ended.stderr
    assert f"{cases} passed" in ended.stderr
    assert project.run("validate", f"examples/{path}").status == 0


@needs("bwrap")
@pytest.mark.libraries
def test_the_example_of_agents_shows_what_a_skill_is_worth(project):
    shutil.copytree(EXAMPLES / "agents", project.path / "agents", ignore=shutil.ignore_patterns("results"))
    assert project.run("validate", "agents").status == 0
    ended = project.run("eval", "agents")
    assert ended.status == 1, ended.stderr
    assert "3 cases: 2 passed, 1 failed, 0 errored\n6 trials: 5 passed, 1 failed, 0 errored" in ended.stderr
    assert re.search(r"pass rate +66\.7% of 3 .* 100\.0% of 3 ", ended.stderr)
    assert "1 win, 0 losses, 2 ties" in project.run("compare", "last", "--by", "variant").stdout
    assert project.run("check", "agents", "--oracle").status == 0


@pytest.mark.libraries
def test_the_example_of_a_shop_tells_work_from_words(project):
    shutil.copytree(EXAMPLES / "retail", project.path / "retail")
    honest, lying = (project.run("eval", "retail", "--target", name, "--repeat", "1") for name in ("honest", "lying"))
    assert (honest.status, lying.status) == (0, 1), honest.stderr
    assert "5 cases: 0 passed, 5 failed, 0 errored" in lying.stderr
    assert project.run("check", "retail", "--oracle").status == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "suite.eval.yaml"), "no command 'run'; did you mean 'eval'?"),
        (("history",), "no command 'history'; did you mean 'results list'?"),
        (
            ("eval", "suite.eval.yaml", "--model", "m"),
            "no option '--model'; did you mean --target PROVIDER:MODEL?",
        ),
        (("eval", "suite.eval.yaml", "--target", "gpt-5"), "write the provider in front: openai:gpt-5"),
        (("eval", "suite.eval.yaml", "--target", "bot.py:run"), "write python:bot.py:run"),
        (("eval", "sub/suite.eval.yaml"), "did you mean 'suite.eval.yaml'?"),
    ],
)
def test_words_of_other_programs_lead_to_ours(project, arguments, said):
    project.write("suite.eval.yaml", SUITE)
    ended = project.run(*arguments)
    assert (ended.status, said in ended.stderr) == (2, True), ended.stderr


def test_the_quickstart_runs_out_of_its_cassette(project):
    shutil.copytree(EXAMPLES / "quickstart", project.path / "quickstart", ignore=shutil.ignore_patterns("results"))
    ended = project.run("eval", "quickstart", "--replay", "quickstart/support.cassette.jsonl", "--out", "out")
    assert ended.status == 0, ended.stderr
    assert [row["reused"] for row in project.rows("out")] == [True] * 5


def test_the_example_of_models_is_green_without_a_key(project):
    shutil.copytree(EXAMPLES / "models", project.path / "models")
    ended = subprocess.run(
        [sys.executable, "models/offline.py"],
        cwd=project.path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("3 of 3 cases passed\n", 0), ended.stderr
    assert project.run("validate", "models").status == 0


def test_people_read_stderr_and_programs_stdout(project):
    project.write("a.eval.yaml", SUITE)
    plain = project.run("eval", "a.eval.yaml")
    assert (plain.status, plain.stdout) == (3, "")
    assert "a.eval.yaml:4" in plain.stderr
    as_json = project.run("eval", "a.eval.yaml", "--json")
    shown = json.loads(as_json.stdout)
    assert shown["cases"] == {"total": 3, "passed": 1, "failed": 1, "errored": 1, "skipped": 0, "shown": 0}
    assert {one["test_id"] for one in shown["not_passed"]} == {"bad", "broken"}
    assert project.run("eval", "a.eval.yaml", "-q").stderr.count("\n") <= 4


def test_what_users_code_prints_does_not_disturb_the_json(project):
    project.write("agent.py", "def answer(prompt):\n    print('thinking')\n    return prompt\n")
    project.write(".agentv/assertions/loud.py", "def loud(ctx):\n    print('loud')\n    return True\n")
    project.write(
        "a.eval.yaml", "target: python:agent.py:answer\ntests:\n  - {id: a, input: x, assert: [{type: loud}]}\n"
    )
    ended = project.run("eval", "a.eval.yaml", "--json")
    assert json.loads(ended.stdout)["cases"]["passed"] == 1, ended.stderr
    assert "thinking" in ended.stderr
    assert "loud" in ended.stderr


def test_an_answer_cannot_steer_the_terminal(project):
    project.write("a.eval.yaml", SUITE)
    for words in ((), ("--json",)):
        ended = project.run("eval", "a.eval.yaml", *words)
        assert "\x1b" not in ended.stderr + ended.stdout
        assert "\x07" not in ended.stderr + ended.stdout


def in_a_terminal(project: Project, *words: str, columns: int = 100) -> tuple[int, list[str], str]:
    """The exit status, what the screen shows in the end, and all that was written to it."""
    leader, follower = pty.openpty()
    environment = {**project.environment, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "40"}
    for name in ("CI", "NO_COLOR"):
        environment.pop(name, None)
    process = subprocess.Popen(
        [AGENTV, *words], cwd=project.path, env=environment, stdin=follower, stdout=follower, stderr=follower
    )
    os.close(follower)
    written = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break
        if not chunk:
            break
        written += chunk
    os.close(leader)
    screen = pyte.HistoryScreen(columns, 200)
    pyte.ByteStream(screen).feed(written)
    return process.wait(timeout=120), [line.rstrip() for line in screen.display], written.decode(errors="replace")


def test_a_person_sees_the_cases_that_did_not_pass(project):
    project.write("a.eval.yaml", SUITE)
    status, screen, written = in_a_terminal(project, "eval", "a.eval.yaml")
    shown = "\n".join(screen)
    assert status == 3
    assert "bad" in shown
    assert "contains 'bye'" in shown
    assert "a.eval.yaml:4" in shown
    assert "1 passed, 1 failed, 1 errored" in shown
    assert "owned" not in written.split("\x1b]0;")[-1][:5]
    assert "\x1b]0;owned" not in written
    assert "Traceback" not in shown
    assert shown.count("read the answers in a browser: agentv view\n") == 1
    _, screen, _ = in_a_terminal(project, "eval", "a.eval.yaml", "--out", "a run")
    assert "read the answers in a browser: agentv view 'a run'" in screen
    for words in ((), ("--quiet",), ("--json",)):
        assert "agentv view" not in project.run("eval", "a.eval.yaml", *words).stderr


def test_the_command_alone_says_where_to_begin(project):
    ended = project.run()
    assert (ended.status, ended.stderr, len(ended.stdout.splitlines())) == (0, "", 6)
    for command in ("init", "eval", "view", "help"):
        assert f"agentv {command} " in ended.stdout


def test_help_explains_commands_and_groups(project):
    for words in ([], ["eval"], ["results"], ["results", "list"]):
        assert project.run("help", *words).stdout == project.run(*words, "--help").stdout, words
    ended = project.run("help", "evil")
    assert (ended.status, "did you mean 'eval'?" in ended.stderr) == (2, True)


def test_strict_makes_warnings_fail(project):
    project.write("a.eval.yaml", "target: echo\ntests:\n  - {id: a, input: x, criteria: good, assert: [contains: x]}\n")
    assert project.run("validate", "a.eval.yaml").status == 0
    assert project.run("validate", "a.eval.yaml", "--strict").status == 2
    assert project.run("eval", "a.eval.yaml").status == 0
    assert project.run("eval", "a.eval.yaml", "--strict").status == 2


def test_assert_runs_one_alone(project):
    project.write(
        ".agentv/assertions/min_words.py",
        "def min_words(ctx, *, minimum: int = 3):\n    return len((ctx.output or '').split()) >= minimum\n",
    )
    good = project.run("assert", "min-words", "--output", "one two three")
    assert (good.status, json.loads(good.stdout)["score"]) == (0, 1)
    bad = project.run("assert", "min-words", "--output", "one")
    assert (bad.status, json.loads(bad.stdout)["pass"]) == (1, False)
    project.write("payload.json", json.dumps({"output": "one two", "config": {"minimum": 2}}))
    assert project.run("assert", "min-words", "--file", "payload.json").status == 0
    assert project.run("assert", "contains", "--output", "x").status == 2
    near = project.run("assert", "min-word", "--output", "x")
    assert near.status == 2
    assert "did you mean 'min-words'?" in near.stderr
    project.write(".agentv/assertions/breaks.py", "def breaks(ctx):\n    raise ValueError('no')\n")
    assert project.run("assert", "breaks", "--output", "x").status == 3


def test_the_row_has_the_keys_of_the_format_in_their_order(project):
    project.write("a.eval.yaml", SUITE)
    project.run("eval", "a.eval.yaml", "--filter", "good")
    (row,) = project.rows()
    assert list(row) == [
        "test_id",
        "suite",
        "eval_path",
        "target",
        "prompt_id",
        "vars",
        "finish_reason",
        "sample",
        "timestamp",
        "status",
        "score",
        "threshold",
        "output",
        "input",
        "scores",
        "error",
        "duration_ms",
        "token_usage",
        "cost_usd",
        "attempts",
        "metadata",
        "case_sha256",
        "key",
        "schema_version",
        "position",
    ]
    assert list(row["scores"][0]) == [
        "name",
        "type",
        "score",
        "pass",
        "weight",
        "required",
        "assertions",
        "reason",
        "details",
        "duration_ms",
        "source",
    ]
    assert row["scores"][0]["source"] == "a.eval.yaml:3"


def test_ten_thousand_lines_of_json(project):
    lines = (json.dumps({"id": str(number), "input": "x", "assert": [{"contains": "x"}]}) for number in range(10_000))
    project.write("a.jsonl", "\n".join(lines))
    project.write("a.yaml", "target: echo\n")
    before = time.monotonic()
    ended = project.run("eval", "a.jsonl", "-q")
    assert ended.status == 0, ended.stderr
    assert "10000 passed" in ended.stderr
    assert time.monotonic() - before < 60
