"""User code that blocks an event loop, stops it, or leaves things behind: only its own case pays, and signals work."""

from __future__ import annotations

import signal
import time

import pytest

CASES = "".join(f"  - {{id: c{number}, input: say {number}, assert: [contains: say]}}\n" for number in range(20))
BLOCKS = """
import time

async def answer(prompt):
    if prompt == "say 7":
        time.sleep(3600)
    return prompt
"""


def suite(target: str = "python:agent.py:answer") -> str:
    return f"target: {target}\ntests:\n{CASES}"


def seconds_of(project, *words: str):
    before = time.monotonic()
    return project.run("eval", "a.eval.yaml", *words), time.monotonic() - before


def test_a_target_that_blocks_for_ever_is_one_errored_case(project):
    project.write("agent.py", BLOCKS)
    project.write("a.eval.yaml", suite())
    ended, seconds = seconds_of(project, "--timeout", "3")
    assert ended.status == 3, ended.stderr
    assert seconds < 60
    errored = {row["test_id"]: row["error"] for row in project.rows() if row["status"] == "errored"}
    assert list(errored) == ["c7"]
    assert errored["c7"]["code"] == "timeout"
    assert errored["c7"]["message"] == "no answer after 3 s: the event loop is blocked (agent.py:6, in answer)"


def test_an_assertion_that_blocks_for_ever_is_one_errored_grade(project):
    project.write(
        ".agentv/assertions/fine.py",
        "import time\nasync def fine(ctx):\n    time.sleep(3600 if ctx.output == 'say 7' else 0)\n    return True\n",
    )
    project.write("a.eval.yaml", suite("echo").replace("contains: say", "{type: fine, timeout_s: 3}"))
    ended, seconds = seconds_of(project)
    assert ended.status == 3, ended.stderr
    assert seconds < 60
    assert [row["test_id"] for row in project.rows() if row["status"] == "errored"] == ["c7"]
    assert "the event loop is blocked (fine.py:3, in fine)" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_heard_while_code_blocks(project, number):
    project.write("agent.py", BLOCKS)
    project.write("a.eval.yaml", suite())
    process = project.start("eval", "a.eval.yaml", "--workers", "4", "--out", "out")
    rows = project.path / "out" / "index.jsonl"
    deadline = time.monotonic() + 120
    while not rows.exists() or rows.read_bytes().count(b"\n") < 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    before = time.monotonic()
    process.send_signal(number)
    assert any("stopping: waiting up to 10 s" in line for line in process.stderr)
    assert time.monotonic() - before < 2
    process.send_signal(number)
    _, stderr = process.communicate(timeout=120)
    assert time.monotonic() - before < 5
    assert process.returncode == 130
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
    project.write("agent.py", LEAVES)
    project.write("a.eval.yaml", suite())
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
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 0, ended.stderr
