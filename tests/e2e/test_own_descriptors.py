"""Users' code shares the process with agentv, and not what its descriptors stand for."""

from __future__ import annotations

import json
import signal
import time

import pytest

from e2e.test_verdict_process import suite

CODE = """
import asyncio, ctypes, gc, multiprocessing, os, subprocess, time
from concurrent.futures import ProcessPoolExecutor

async def answer_async(prompt):
    await asyncio.sleep(0.01)
    return answer(prompt)

def runs(process):
    try:
        return bool(open(f"/proc/{process}/cmdline").read())  # empty of one that was ended and not yet waited for
    except OSError:
        return False

def answer(prompt):
    if prompt == "close all":
        os.closerange(0, 4096)
    if prompt == "close all but three":
        os.closerange(3, 4096)
    if prompt == "no output":
        found = next(one for one in gc.get_objects() if type(one).__name__ == "Relay")
        os.dup2(os.open(os.devnull, os.O_WRONLY), found.fileno())
    if prompt == "close some":
        os.closerange(4, 4096)
    if prompt == "daemon":
        subprocess.run(["setsid", "--fork", "sh", "-c", "echo $$ >> pids; exec sleep 600"])
        while not os.path.exists("pids"):
            time.sleep(0.005)
    if prompt == "look":
        return f"{prompt}: {len([one for one in open('pids').read().split() if runs(one)])} left"
    if prompt == "deaf":
        open("deaf", "w").close()
        ctypes.PyDLL(None).sleep(600)
    if prompt == "close what there is":
        os.closerange(3, 65_536)
    if prompt == "null for all":
        null = os.open(os.devnull, os.O_RDWR)
        for number in map(int, os.listdir("/proc/self/fd")):
            if number > 2:
                os.dup2(null, number)
    if prompt == "another program":
        os.execv("/bin/sleep", ["sleep", "600"])
    if prompt.startswith("write below"):
        for number in range(3, int(prompt.split()[-1])):
            try:
                os.write(number, b"x")
            except OSError:
                pass
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
@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("close all", "user code closed file descriptors that it did not open"),
        ("close all but three", "user code closed file descriptors that it did not open"),
        ("close what there is", "user code closed file descriptors that it did not open"),
        ("null for all", "user code closed file descriptors that it did not open"),
        ("another program", "user code closed file descriptors that it did not open, or replaced the program"),
    ],
)
def test_code_that_closes_all_descriptors_ends_the_run_without_a_verdict(project, prompt, told, function):
    project.write("code.py", CODE)
    project.write("a.eval.yaml", suite("hello", prompt, "last", target=f"python:code.py:{function}"))
    ended = project.run("eval", "a.eval.yaml", "--json", "--out", "out")
    assert (ended.status, ended.stdout) == (3, "")
    assert f"{told}, so there is no verdict" in ended.stderr
    assert "agentv eval a.eval.yaml --json --out out --resume=out" in ended.stderr
    project.write("code.py", CODE.replace(f'prompt == "{prompt}"', "False"))
    resumed = project.run("eval", "a.eval.yaml", "--json", "--out", "out", "--resume=out")
    assert (resumed.status, json.loads(resumed.stdout)["cases"]["passed"]) == (0, 3)
    assert [row["output"] for row in project.rows("out")] == ["hello", prompt, "last"]


def test_what_code_writes_to_numbers_that_it_was_not_given_reaches_neither_output_nor_results(project):
    project.write("code.py", CODE)
    project.write("a.eval.yaml", suite("write below 64", "hello"))
    ended = project.run("eval", "a.eval.yaml", "--json", "--out", "out")
    assert (ended.status, json.loads(ended.stdout)["cases"]["passed"]) == (0, 2), ended.stderr
    assert not (project.path / "out" / "rejected.jsonl").exists()
    again = project.run("eval", "a.eval.yaml", "--out", "out", "--resume=out")
    assert (again.status, "resuming: 2 trials complete" in again.stderr) == (0, True)


def test_what_code_writes_to_all_numbers_is_found_in_the_results_and_is_no_part_of_the_output(project):
    project.write("code.py", CODE)
    project.write("a.eval.yaml", suite("write below 65536", "hello"))
    ended = project.run("eval", "a.eval.yaml", "--json", "--out", "out")
    assert (ended.status, json.loads(ended.stdout)["cases"]["passed"]) == (3, 2)
    assert "journal.jsonl was changed" in ended.stderr
    again = project.run("eval", "a.eval.yaml", "--out", "out", "--resume=out")
    assert again.status == 3  # it writes there again
    project.write("code.py", CODE.replace("os.write(number", "print(number"))
    mended = project.run("eval", "a.eval.yaml", "--out", "out", "--resume=out")
    assert (mended.status, len(project.rows("out"))) == (0, 2)


@pytest.mark.parametrize("function", ["pool", "held_pool"])
def test_pools_of_forks_end_when_they_are_told_to(project, function):
    project.write("code.py", CODE)
    names = [f"hello {number}" for number in range(8)]
    text = suite(*names, target=f"python:code.py:{function}").replace("workers: 1", "workers: 4, timeout_s: 300")
    project.write("a.eval.yaml", text)
    ended = project.run("eval", "a.eval.yaml", "--out", "out")
    assert ended.status == 0, ended.stderr
    if function == "held_pool":  # as any program: by the signal
        assert {row["output"].rpartition(" ")[2] for row in project.rows("out")} == {"-15"}


@pytest.mark.parametrize("function", ["answer", "answer_async"])
def test_a_run_does_not_hang_on_descriptors_that_code_can_close(project, function):
    project.write("code.py", CODE)
    text = suite("close some", "daemon", "look", target=f"python:code.py:{function}")
    project.write("a.eval.yaml", text.replace("'look']", "'look: 0 left']"))
    ended = project.run("eval", "a.eval.yaml", "--json", "--out", "out")
    assert (ended.status, json.loads(ended.stdout)["cases"]["passed"]) == (0, 3), ended.stderr


def test_a_run_that_hears_no_signal_can_be_ended(project):
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


def test_output_that_does_not_arrive_whole_is_no_success(project):
    project.write("code.py", CODE)
    project.write("a.eval.yaml", suite("hello", "no output"))
    ended = project.run("eval", "a.eval.yaml", "--json", "--out", "out")
    assert (ended.status, ended.stdout) == (3, "")
    assert "agentv eval a.eval.yaml --json --out out --resume=out" in ended.stderr
    assert "error: user code intercepted standard output, so there is no verdict" in ended.stderr


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
