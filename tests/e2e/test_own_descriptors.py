"""What users' code does to descriptors and processes stays in its worker."""

from __future__ import annotations

import json
import signal
import time

import pytest

from e2e.test_verdict_process import suite

CODE = """
import asyncio, ctypes, multiprocessing, os
from concurrent.futures import ProcessPoolExecutor

async def answer_async(prompt):
    await asyncio.sleep(0.01)
    return answer(prompt)

def answer(prompt):
    if prompt == "close all":
        os.closerange(0, 65_536)
    if prompt == "null for all":
        null = os.open(os.devnull, os.O_RDWR)
        for number in map(int, os.listdir("/proc/self/fd")):
            if number > 2:
                os.dup2(null, number)
    if prompt == "another program":
        os.execv("/bin/sleep", ["sleep", "600"])
    if prompt == "write to all":
        for number in range(3, 65_536):
            try:
                os.write(number, b"x")
            except OSError:
                pass
    if prompt == "deaf":
        open("deaf", "w").close()
        ctypes.PyDLL(None).sleep(600)
    return prompt

def square(number):
    return number * number

def pool(prompt):
    with multiprocessing.get_context("fork").Pool(2) as workers:
        assert sum(workers.map(square, range(10))) == 285
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as workers:
        assert sum(workers.map(square, range(10))) == 285
    return prompt

held = []

def held_pool(prompt):
    held.append(multiprocessing.get_context("fork").Pool(1))
    process = multiprocessing.get_context("fork").Process(target=asyncio.run, args=(asyncio.sleep(600),))
    process.start()
    process.terminate()
    process.join()
    return f"{prompt} {process.exitcode}"
"""


@pytest.mark.parametrize("function", ["answer", "answer_async"])
@pytest.mark.parametrize("prompt", ["close all", "null for all", "another program", "write to all"])
def test_code_that_closes_or_writes_to_all_descriptors_errs_its_own_trial(project, prompt, function):
    project.write("code.py", CODE)
    text = suite("hello", prompt, "last", target=f"python:code.py:{function}")
    project.write("a.eval.yaml", text.replace("workers: 1", "workers: 1, timeout_s: 3"))
    ended = project.run("eval", "a.eval.yaml", "--json", "--out", "out")
    assert ended.status == 3
    assert json.loads(ended.stdout)["cases"] == {**json.loads(ended.stdout)["cases"], "passed": 2, "errored": 1}
    assert [row["status"] for row in project.rows("out")] == ["passed", "errored", "passed"]
    assert not (project.path / "out" / "rejected.jsonl").exists()


def test_a_run_ends_by_ctrl_c_although_a_worker_hears_nothing(project):
    project.write("code.py", CODE)
    project.write("a.eval.yaml", suite("hello", "deaf"))
    process = project.start("eval", "a.eval.yaml", "--out", "out")
    while not (project.path / "deaf").exists():
        time.sleep(0.05)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    assert process.returncode == 130
    assert "agentv eval a.eval.yaml --out out --resume=out" in process.communicate()[1]


def test_a_slow_reader_gets_all_and_one_that_leaves_is_noticed(project):
    whole = project.run("schema").stdout
    process = project.start("schema")
    time.sleep(1)  # it has filled the pipe, or is about to
    assert process.communicate()[0] == whole
    assert len(whole) > 1 << 17
    process = project.start("schema")
    process.stdout.close()
    assert (process.wait(60), process.stderr.read()) == (3, "")
    process.stderr.close()
