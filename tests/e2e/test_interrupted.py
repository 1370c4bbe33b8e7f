"""Ctrl-C, a second one, SIGTERM, SIGKILL: what finished is kept, the totals are right, nothing is left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doubles.processes_alive import alive, ids_in

SLOW = """
import asyncio, os

async def answer(prompt):
    await asyncio.sleep(float(os.environ.get("ANSWER_S", "0.05")))
    return prompt
"""
CASES = "".join(f"  - {{id: c{number}, input: hello, assert: [contains: hello]}}\n" for number in range(60))
SUITE = f"target: python:agent.py:answer\ntests:\n{CASES}"


def started(project, *words: str, suite: str = SUITE):
    project.write("agent.py", SLOW)
    project.write("a.eval.yaml", suite)
    return project.start("eval", "a.eval.yaml", "--workers", "4", "--out", "out", *words)


def when_rows(path: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} never held {count} rows")


def summary(project) -> dict:
    return json.loads((project.path / "out" / "summary.json").read_text())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_saves_and_says_how_to_go_on(project, number):
    process = started(project)
    when_rows(project.path / "out" / "index.jsonl", 8)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "--resume=out" in stderr
    kept = len(project.rows("out"))
    assert 8 <= kept < 60
    assert summary(project)["cases"] == {
        "total": 60,
        "passed": kept,
        "failed": 0,
        "errored": 0,
        "skipped": 60 - kept,
        "shown": 0,
    }

    resumed = project.run("eval", "a.eval.yaml", "--workers", "4", "--out", "out", "--resume=out")
    assert resumed.status == 0, resumed.stderr
    assert sorted(row["test_id"] for row in project.rows("out")) == sorted(f"c{one}" for one in range(60))
    assert summary(project)["cases"]["passed"] == 60


def test_the_second_ctrl_c_stops_now(project):
    process = started(project, suite=SUITE.replace("python:agent.py:answer", "'cli:echo $$ >> pids; sleep 60'"))
    pids = ids_in(project.path / "pids", 4)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    before = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert time.monotonic() - before < 5
    assert "Traceback" not in stderr
    time.sleep(0.1)
    assert not [pid for pid in pids if alive(pid)]


def test_a_killed_run_loses_no_row_and_resumes_to_the_right_totals(project):
    process = started(project)
    when_rows(project.path / "out" / "index.jsonl", 10)
    process.kill()
    process.communicate()
    kept = {row["test_id"] for row in project.rows("out")}
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume")
    assert resumed.status == 0, resumed.stderr
    ids = [row["test_id"] for row in project.rows("out")]
    assert len(ids) == len(set(ids)) == 60
    assert kept <= set(ids)
    assert summary(project)["trials"]["passed"] == 60


def test_no_totals_stand_beside_the_rows_of_a_resume_that_was_killed(project):
    """They were of rows that no longer count."""
    process = started(project)
    process.communicate(timeout=120)
    path = project.path / "out" / "summary.json"
    path.write_text(json.dumps({**summary(project), "ours": 1}))
    edited = SUITE.replace("contains: hello", "contains: bye").replace("input: hello", "input: hello you")
    project.write("a.eval.yaml", edited)
    process = project.start("eval", "a.eval.yaml", "--workers", "1", "--out", "out", "--resume")
    when_rows(project.path / "out" / "history.jsonl", 60)
    when_rows(project.path / "out" / "index.jsonl", 1)
    assert not path.exists()
    process.kill()
    process.communicate()
    assert "passed" in project.run("results", "show", "out").stdout
    assert not path.exists()


def test_a_resume_says_that_its_journal_is_damaged(project):
    cases = "".join(f"  - {{id: {name}, input: hello, assert: [contains: hello]}}\n" for name in "ab")
    project.write("a.eval.yaml", f"target: echo\ntests:\n{cases}")
    assert project.run("eval", "a.eval.yaml", "--out", "out").status == 0
    journal = project.path / "out" / "journal.jsonl"
    journal.write_text(journal.read_text().replace("hello", "jello", 1))
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume")
    assert resumed.status == 0
    assert "journal.jsonl: 1 answer skipped" in resumed.stderr + resumed.stdout


def test_a_resume_after_an_edit_counts_what_the_file_says_now(project):
    process = started(project)
    when_rows(project.path / "out" / "index.jsonl", 10)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    edited = SUITE.replace(
        "{id: c0, input: hello, assert: [contains: hello]}", "{id: c0, input: hello, assert: [contains: bye]}"
    )
    project.write("a.eval.yaml", edited)
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume")
    assert resumed.status == 1, resumed.stderr
    cases = summary(project)["cases"]
    assert (cases["total"], cases["passed"], cases["failed"]) == (60, 59, 1)


def test_a_resume_with_a_higher_mark_judges_anew_and_lists_what_failed_before(project):
    project.write(
        "a.eval.yaml",
        "target: echo\ntests:\n  - {id: a, input: hello, threshold: 0.5, assert: [contains: hello, contains: bye]}\n",
    )
    assert project.run("eval", "a.eval.yaml", "--out", "out").status == 0
    again = project.run("eval", "a.eval.yaml", "--out", "out", "--resume", "--threshold", "1")
    assert again.status == 1
    nothing_left = project.run("eval", "a.eval.yaml", "--out", "out", "--resume", "--threshold", "1", "--json")
    assert nothing_left.status == 1
    assert [one["test_id"] for one in json.loads(nothing_left.stdout)["not_passed"]] == ["a"]


def test_a_directory_with_a_run_is_not_written_over(project):
    project.write("a.eval.yaml", "target: echo\ntests:\n  - {id: a, input: hello, assert: [contains: hello]}\n")
    assert project.run("eval", "a.eval.yaml", "--out", "out").status == 0
    before = (project.path / "out" / "index.jsonl").read_bytes()
    again = project.run("eval", "a.eval.yaml", "--out", "out")
    assert again.status == 2
    assert "--resume" in again.stderr
    assert (project.path / "out" / "index.jsonl").read_bytes() == before


def test_a_function_that_never_returns_does_not_hold_up_the_exit(project):
    project.write(
        "agent.py",
        "import time\ndef answer(prompt):\n    time.sleep(600) if prompt == 'hang' else None\n    return prompt\n",
    )
    project.write(
        "a.eval.yaml",
        "target: python:agent.py:answer\ntests:\n"
        "  - {id: hang, input: hang, timeout_s: 0.2, assert: [contains: hang]}\n"
        "  - {id: fine, input: fine, assert: [contains: fine]}\n",
    )
    before = time.monotonic()
    ended = project.run("eval", "a.eval.yaml", "--workers", "2")
    assert ended.status == 3
    assert time.monotonic() - before < 20
    assert {row["test_id"]: row["status"] for row in project.rows()} == {"hang": "errored", "fine": "passed"}


COUNTED = """
def answer(prompt):
    with open("asked.txt", "a") as file:
        file.write(prompt + "\\n")
    return prompt
"""
TEN = "target: python:agent.py:answer\ntests:\n" + "".join(
    f"  - {{id: c{number}, input: hello {number}, assert: [contains: hello]}}\n" for number in range(10)
)


def asked(project) -> int:
    return len((project.path / "asked.txt").read_text().splitlines())


def test_an_answer_without_a_row_is_graded_and_not_paid_for_twice(project):
    project.write("agent.py", COUNTED)
    project.write("a.eval.yaml", TEN)
    assert project.run("eval", "a.eval.yaml", "--out", "out").status == 0
    whole = project.rows("out")
    index = project.path / "out" / "index.jsonl"
    index.write_text("".join(index.read_text().splitlines(keepends=True)[:7]))
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume")
    assert resumed.status == 0, resumed.stderr
    assert "resuming: 7 trials complete, 3 to grade again from stored answers, 0 to run" in resumed.stderr
    assert asked(project) == 10
    same = ("test_id", "status", "score", "output", "key", "case_sha256")
    assert sorted([row[key] for key in same] for row in project.rows("out")) == sorted(
        [row[key] for key in same] for row in whole
    )


def test_a_row_that_somebody_turned_into_a_pass_is_not_believed(project):
    project.write("agent.py", COUNTED)
    project.write("a.eval.yaml", TEN.replace("hello 3, assert: [contains: hello]", "hello 3, assert: [contains: no]"))
    assert project.run("eval", "a.eval.yaml", "--out", "out").status == 1
    index = project.path / "out" / "index.jsonl"
    index.write_text(index.read_text().replace('"status":"failed","score":0.0', '"status":"passed","score":1.0'))
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume")
    assert resumed.status == 1, resumed.stderr
    assert "1 row was changed after it was written: moved to rejected.jsonl" in resumed.stderr
    assert summary(project)["cases"] == {"total": 10, "passed": 9, "failed": 1, "errored": 0, "skipped": 0, "shown": 0}
    assert asked(project) == 10


def test_edited_assertions_are_graded_without_asking_again_and_an_edited_input_is_asked(project):
    project.write("agent.py", COUNTED)
    project.write("a.eval.yaml", TEN)
    project.run("eval", "a.eval.yaml", "--out", "out")
    edited = TEN.replace("hello 3, assert: [contains: hello]", "hello 3, assert: [contains: nothing]")
    project.write("a.eval.yaml", edited.replace("input: hello 4", "input: hello four"))
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume")
    assert resumed.status == 1, resumed.stderr
    assert "resuming: 8 trials complete, 1 to grade again from stored answers, 1 to run" in resumed.stderr
    assert asked(project) == 11
    assert summary(project)["cases"] == {"total": 10, "passed": 9, "failed": 1, "errored": 0, "skipped": 0, "shown": 0}


PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(20)
FILES = {
    "agent.py": COUNTED,
    ".agentv/assertions/polite.py": "def polite(ctx, *, words: list = ['please']):\n    return True\n",
    "shown.png": PICTURE,
    "a.eval.yaml": (
        "target: python:agent.py:answer\nenv: {FOO: one}\ntests:\n"
        "  - id: a\n    input:\n      - {role: user, content: [{type: image, value: ./shown.png}]}\n"
        "    assert: [{type: polite}]\n"
    ),
}


@pytest.mark.parametrize(
    ("name", "text", "stands"),
    [
        ("unrelated.txt", "x", 1),
        ("shown.png", PICTURE + b"x", 0),
        ("a.eval.yaml", str(FILES["a.eval.yaml"]).replace("FOO: one", "FOO: two"), 0),
        (".agentv/assertions/polite.py", "def polite(ctx, *, words: list = ['please']):\n    return 1.0\n", 0),
    ],
)
def test_a_trial_stands_as_long_as_all_that_determines_it_does(project, name, text, stands):
    for file, content in FILES.items():
        project.write(file, content)
    assert project.run("eval", "a.eval.yaml", "--out", "out").status == 0
    project.write(name, text)
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume")
    assert resumed.status == 0, resumed.stderr
    assert f"resuming: {stands} trial{'' if stands == 1 else 's'} complete" in resumed.stderr
    assert asked(project) == (2 if name.endswith((".png", ".yaml")) else 1)


def test_a_signal_while_the_command_is_loaded_is_no_traceback(project):
    """Ctrl-C just after Enter: an imported package sends it, as early as a person may."""
    project.write("early/click.py", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    ended = subprocess.run(
        [sys.executable, "-m", "agentv", "results", "list"],
        env={**os.environ, "PYTHONPATH": str(project.path / "early")},
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "\ninterrupted; nothing was run\n")
