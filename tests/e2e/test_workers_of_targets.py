"""A function that has processes of its own, started anew, work for it: they find its module."""

from __future__ import annotations

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
