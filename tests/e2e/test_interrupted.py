"""Ctrl-C once and twice, SIGTERM, SIGKILL and blocking code: finished work is kept, totals are right, nothing keeps
running."""

import json
import shlex
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from doubles.processes_alive import alive, ids_in
from doubles.thorough import examples
from doubles.waiting import until
from e2e.command import AGENTV, stopped

SLOW = """
import asyncio, os

async def answer(prompt):
    await asyncio.sleep(float(os.environ.get("ANSWER_S", "0.05")))
    return prompt
"""
CASES = "".join(f"  - {{id: c{number}, input: hello, assert: [contains: hello]}}\n" for number in range(60))
SUITE = f"target: python:agent.py:answer\ntests:\n{CASES}"


def started(project, *words: str, suite: str = SUITE):
    project.write_files({"agent.py": SLOW, "a.eval.yaml": suite})
    return project.start("eval", "a.eval.yaml", "--workers", "4", "--out", "out", *words)


def when_rows(path: Path, count: int) -> None:
    until(lambda: path.exists() and path.read_bytes().count(b"\n") >= count)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_saves_and_says_how_to_go_on(project, number):
    process = started(project)
    when_rows(project.path / "out" / "index.jsonl", 8)
    stderr = stopped(process, number, status=130)
    assert "Traceback" not in stderr
    assert "--resume=out" in stderr
    kept = len(project.rows("out"))
    assert 8 <= kept < 60
    shown = project.summary()["cases"]
    assert shown == {"total": 60, "passed": kept, "failed": 0, "errored": 0, "skipped": 60 - kept, "shown": 0}

    project.run("eval", "a.eval.yaml", "--workers", "4", "--out", "out", "--resume=out", status=0)
    assert sorted(row["test_id"] for row in project.rows("out")) == sorted(f"c{one}" for one in range(60))
    assert project.summary()["cases"]["passed"] == 60


def test_the_second_ctrl_c_stops_now(project):
    process = started(project, suite=SUITE.replace("python:agent.py:answer", "'cli:echo $$ >> pids; sleep 60'"))
    pids = ids_in(project.path / "pids", 4)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    before = time.monotonic()
    stderr = stopped(process, status=130)
    assert time.monotonic() - before < 5
    assert "Traceback" not in stderr
    time.sleep(0.1)
    assert not [pid for pid in pids if alive(pid)]


def test_a_resume_says_that_its_journal_is_damaged(project):
    project.write("a.eval.yaml", "target: echo\ntests:\n  - {id: a, input: hello, assert: [contains: hello]}\n")
    assert project.run("eval", "a.eval.yaml", "--out", "out").status == 0
    journal = project.path / "out" / "journal.jsonl"
    journal.write_text(journal.read_text().replace("hello", "jello", 1))
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume", status=0)
    assert "journal.jsonl: 1 answer skipped" in resumed.stderr + resumed.stdout


def test_a_resume_with_a_higher_mark_judges_anew_and_lists_what_failed_before(project):
    project.write(
        "a.eval.yaml",
        "target: echo\ntests:\n  - {id: a, input: hello, threshold: 0.5, assert: [contains: hello, contains: bye]}\n",
    )
    assert project.run("eval", "a.eval.yaml", "--out", "out").status == 0
    project.run("eval", "a.eval.yaml", "--out", "out", "--resume", "--threshold", "1", status=1)
    nothing_left = project.run("eval", "a.eval.yaml", "--out", "out", "--resume", "--threshold", "1", "--json")
    assert nothing_left.status == 1
    assert [one["test_id"] for one in json.loads(nothing_left.stdout)["not_passed"]] == ["a"]


COUNTED = """
def answer(prompt):
    with open("asked.txt", "a") as file:
        file.write(prompt + "\\n")
    return prompt
"""


def asked(project) -> int:
    return len((project.path / "asked.txt").read_text().splitlines())


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
    project.write_files(FILES)
    assert project.run("eval", "a.eval.yaml", "--out", "out").status == 0
    project.write(name, text)
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume", status=0)
    assert f"resuming: {stands} trial{'' if stands == 1 else 's'} complete" in resumed.stderr
    assert asked(project) == (2 if name.endswith((".png", ".yaml")) else 1)


def test_a_signal_while_the_command_is_loaded_is_no_traceback(project):
    """An imported package sends the signal, as early as a user could after Enter."""
    project.write("early/click.py", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    early = {"PYTHONPATH": str(project.path / "early")}
    ended = project.other(sys.executable, "-m", "agentv", "results", "list", env=early)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "\ninterrupted; nothing was run\n")


AGENT = """\
import pathlib, time

def ask(prompt):
    if not pathlib.Path("go").exists():
        time.sleep(3 if prompt == "slow" else 0)
    return prompt
"""


def test_a_run_that_trusts_its_data_and_reads_outside_goes_on_as_it_says(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "rows.jsonl").write_text(
        '{"id": "a", "input": "quick", "assert": [{"type": "python", "value": "len(output) > 1"}]}\n'
        '{"id": "b", "input": "slow", "assert": [{"type": "python", "value": "len(output) > 1"}]}\n'
    )
    project.write("agent.py", AGENT)
    project.write("a.eval.yaml", f"target: python:agent.py:ask\ntests: file://{outside}/rows.jsonl\n")
    assert project.run("eval", "a.eval.yaml").status == 2
    assert project.run("eval", "a.eval.yaml", "--allow-outside").status == 2
    running = project.start("eval", "a.eval.yaml", "--trust-data", "--allow-outside", "-j", "1", "--out", "out")
    index = project.path / "out" / "index.jsonl"
    while not (index.exists() and index.read_text().count("\n")) and running.poll() is None:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    time.sleep(0.2)
    said = stopped(running, status=130)
    project.write("go", "")
    [line] = [line for line in said.splitlines() if line.lstrip().startswith("agentv eval")]
    project.run(*shlex.split(line)[1:], status=0)
    assert [row["test_id"] for row in project.rows("out")] == ["a", "b"]


BLOCKING_CASES = "".join(
    f"  - {{id: c{number}, input: say {number}, assert: [contains: say]}}\n" for number in range(20)
)
BLOCKS = """
import time

async def answer(prompt):
    if prompt == "say 7":
        time.sleep(3600)
    return prompt
"""


def suite(target: str = "python:agent.py:answer") -> str:
    return f"target: {target}\ntests:\n{BLOCKING_CASES}"


def seconds_of(project, *words: str):
    before = time.monotonic()
    return project.run("eval", "a.eval.yaml", *words), time.monotonic() - before


def test_a_target_that_blocks_for_ever_is_one_errored_case(project):
    project.write_files({"agent.py": BLOCKS, "a.eval.yaml": suite()})
    ended, seconds = seconds_of(project, "--timeout", "3")
    assert ended.status == 3, ended.stderr
    assert seconds < 60
    errored = {row["test_id"]: row["error"] for row in project.rows() if row["status"] == "errored"}
    assert list(errored) == ["c7"]
    assert errored["c7"]["code"] == "timeout"
    assert errored["c7"]["message"] == "no answer after 3 s: the event loop is blocked (agent.py:6, in answer)"


def test_signals_are_heard_while_code_blocks(project):
    project.write_files({"agent.py": BLOCKS, "a.eval.yaml": suite()})
    process = project.start("eval", "a.eval.yaml", "--workers", "4", "--out", "out")
    rows = project.path / "out" / "index.jsonl"
    until(lambda: rows.exists() and rows.read_bytes().count(b"\n") >= 4)
    before = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert any("stopping: waiting up to 10 s" in line for line in process.stderr)
    assert time.monotonic() - before < 2
    stderr = stopped(process, signal.SIGTERM, status=130)
    assert time.monotonic() - before < 5
    assert "--resume=out" in stderr
    assert "Traceback" not in stderr


LEAVES = """
import asyncio

async def background():
    await asyncio.sleep(3600)

async def raises():
    raise ValueError("in the background")

async def numbers():
    try:
        yield 1
        yield 2
    finally:
        await asyncio.sleep(0)

kept = []

async def answer(prompt):
    kept.append(asyncio.create_task(background()))
    kept.append(asyncio.create_task(raises()))
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    async for number in numbers():
        break
    asyncio.create_task(asyncio.to_thread(__import__("time").sleep, 3600))
    await asyncio.sleep(0)
    return prompt
"""


def test_what_is_left_behind_neither_shows_nor_holds_up_the_exit(project):
    project.write_files({"agent.py": LEAVES, "a.eval.yaml": suite()})
    ended, seconds = seconds_of(project, "--quiet")
    assert ended.status == 0, ended.stderr
    assert seconds < 60
    for noise in ("Traceback", "destroyed", "never retrieved", "never awaited", "background"):
        assert noise not in ended.stderr


def test_what_a_module_keeps_between_calls_belongs_to_one_loop(project):
    project.write(
        "agent.py",
        "import asyncio\nlock, queue = asyncio.Lock(), asyncio.Queue()\nhome = None\n"
        "async def answer(prompt):\n    global home\n    home = home or asyncio.get_running_loop()\n"
        "    async with lock:\n        await queue.put(prompt)\n        await asyncio.sleep(0.001)\n"
        "        said = await queue.get()\n"
        "    return said if home is asyncio.get_running_loop() else 'elsewhere'\n",
    )
    project.write("a.eval.yaml", suite())
    project.run("eval", "a.eval.yaml", status=0)


DRIVER = Path(__file__).parent.parent / "doubles" / "killed_runs.py"
WORKERS = 4
KILLS = {"SIGKILL": examples(100, 10), "SIGTERM": examples(20, 3)}
"""Number of kills per test; SIGKILL has two tests, so that test processes share the work."""

CRASHES_AGENT = """
import asyncio, json, os

def note(line):
    with open(os.environ["OUT"] + ".calls", "a") as file:
        file.write(line + "\\n")

async def answer(prompt, case_id):
    await asyncio.sleep(0.004)
    note("target " + case_id)
    return "It is " + prompt

async def judge(prompt, case_id):
    await asyncio.sleep(0.002)
    note("judge " + case_id)
    return json.dumps({"checks": [{"id": "r1", "satisfied": True}], "overall_reasoning": "so it is"})
"""
CRASHES_CASES = "".join(
    f"  - {{id: c{number}, input: 'no. {number}', assert: [contains: '{'7' if number % 3 else 'It'}', is right]}}\n"
    for number in range(24)
)
CRASHES_SUITE = f"target: python:agent.py:answer\njudge: python:agent.py:judge\ntests:\n{CRASHES_CASES}"
SAME = (
    "test_id",
    "sample",
    "status",
    "score",
    "output",
    "input",
    "key",
    "case_sha256",
    "metadata",
    "error",
    "attempts",
)


def row_of(line: str) -> dict:
    row = json.loads(line)
    scores = [(one["name"], one["score"], one["pass"], one["assertions"], one["reason"]) for one in row["scores"]]
    return {**{key: row[key] for key in SAME}, "scores": scores}


def rows(directory: Path) -> list[dict]:
    """Return the rows in case order, without fields that vary between undisturbed runs."""
    found = [row_of(line) for line in (directory / "index.jsonl").read_text().splitlines()]
    return sorted(found, key=lambda row: row["test_id"])


def totals(directory: Path) -> dict:
    summary = json.loads((directory / "summary.json").read_text())
    return {key: summary[key] for key in ("cases", "trials", "pass_rate", "mean_score", "by_target")}


def calls(project, run: str) -> Counter[str]:
    return Counter((project.path / f"{run}.calls").read_text().splitlines())


def answers(directory: Path) -> list[str]:
    """Return the keys of the answers in a journal."""
    lines = (json.loads(line) for line in (directory / "journal.jsonl").read_text().splitlines())
    return [line["key"] for line in lines if "key" in line]


@pytest.mark.parametrize(("number", "seed"), [*(("SIGKILL", seed) for seed in range(2)), ("SIGTERM", 11)])
def test_a_run_that_is_killed_over_and_over_ends_as_an_undisturbed_one(project, number, seed):
    kills = KILLS[number]
    project.write_files({"agent.py": CRASHES_AGENT, "a.eval.yaml": CRASHES_SUITE})
    project.run("eval", "a.eval.yaml", "--workers", str(WORKERS), "--out", "whole", env={"OUT": "whole"}, status=1)
    done = project.other(sys.executable, str(DRIVER), str(kills), str(seed), number)
    runs = json.loads(done.stdout)
    assert sum(run["kills"] for run in runs) == kills
    assert max(run["kills"] for run in runs) > 1
    for run in runs:
        directory = project.path / run["out"]
        assert run["status"] == 1, (project.path / "stderr.txt").read_text()[-2000:]
        assert rows(directory) == rows(project.path / "whole")
        assert totals(directory) == totals(project.path / "whole")
        kept = answers(directory)
        assert len(kept) == len(set(kept)), "an answer that was kept was asked for again"
        repeated = calls(project, run["out"]) - calls(project, "whole")
        assert repeated.total() <= WORKERS * run["kills"]
        assert set(calls(project, run["out"])) == set(calls(project, "whole"))


def test_a_run_on_a_full_disk_says_so_and_goes_on_from_there(project):
    project.write_files({"agent.py": CRASHES_AGENT, "a.eval.yaml": CRASHES_SUITE})
    words = ["eval", "a.eval.yaml", "--workers", str(WORKERS), "--out", "out"]
    limited = f"ulimit -f 20; exec {AGENTV} {' '.join(words)}"  # limit on a file's size, in kilobyte blocks
    full = project.other("bash", "-c", limited, env={"OUT": "out"})
    assert full.returncode == 3, full.stderr
    assert "the file exceeds the maximum size" in full.stderr
    assert "Traceback" not in full.stderr
    project.run(*words, "--resume", env={"OUT": "out"}, status=1)
    project.run("eval", "a.eval.yaml", "--out", "whole", env={"OUT": "whole"})
    assert rows(project.path / "out") == rows(project.path / "whole")
    kept = answers(project.path / "out")
    assert len(kept) == len(set(kept))
