"""Functions in workers, by the command: processes that they start find their module, and a debugger can stop in them."""

from __future__ import annotations

import subprocess
import time

import pytest

AGENT = """
import multiprocessing
import os


def work(prompt):
    return f"{prompt} {os.getpid()}"


def answer(prompt):
    with multiprocessing.get_context("METHOD").Pool(1) as pool:
        (text,) = pool.map_async(work, [prompt]).get(timeout=30)
    asked, process = text.split()
    return f"{asked} elsewhere" if int(process) != os.getpid() else "here"
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_pool_is_sent_functions_of_the_file(project, method):
    project.write("agent.py", AGENT.replace("METHOD", method))
    project.write(
        "a.eval.yaml", "target: 'python:agent.py:answer'\ntests: [{id: a, input: x, assert: [{equals: x elsewhere}]}]\n"
    )
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 0, ended.stderr


STOPS = """
def answer(prompt):
    word = "found"
    breakpoint()
    return word
"""


def test_a_debugger_stops_in_a_function_on_the_terminal_and_no_time_limit_ends_it(project):
    project.write("agent.py", STOPS)
    project.write(
        "a.eval.yaml",
        "target: python:agent.py:answer\nrun: {timeout_s: 0.5}\n"
        "tests: [{id: a, input: x, assert: [equals: changed]}, {id: b, input: x, assert: [equals: found]}]\n",
    )
    process = project.start("eval", "a.eval.yaml", "--debug", stdin=subprocess.PIPE)
    time.sleep(3)
    _, stderr = process.communicate("p word\nword = 'changed'\nc\nc\n", timeout=120)
    assert process.returncode == 0, stderr
    assert "(Pdb) 'found'" in stderr
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 3
    assert "breakpoint() requires the option --debug of agentv eval (agent.py:4, in answer)" in ended.stderr


@pytest.mark.parametrize("words", [("--workers", "2"), ("--executor", "ray")])
def test_debugging_is_one_trial_at_a_time_on_this_machine(project, words):
    project.write("a.eval.yaml", "target: echo\ntests: [{id: a, input: x, assert: [equals: x]}]\n")
    ended = project.run("eval", "a.eval.yaml", "--debug", *words)
    assert ended.status == 2
    assert "--debug runs one trial at a time on this machine" in ended.stderr
