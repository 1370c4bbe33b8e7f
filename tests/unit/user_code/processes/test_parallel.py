"""Work divided among processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

here = os.getpid()
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are split on Linux alone")


PROGRAM = """
import os
from agentv.user_code.processes import parallel as forks

here, forks._cores = os.getpid(), lambda: 2

def where(number):
    return os.getpid()

def die_there(number):
    if number == 150 and os.getpid() != here:
        os._exit(1)
    return number
"""


def ran(*lines: str) -> str:
    """What a program of its own prints: those that run tests have threads, which nobody may split."""
    program = "\n".join([PROGRAM, *lines])
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@on_linux
def test_many_items_are_done_by_several_processes_and_few_here():
    assert ran("print({*forks.mapped(where, range(20))} == {here})") == "True"
    assert ran("found = list(forks.mapped(where, range(400)))", "print(found[0] == here, here in found[1:])") == (
        "True False"
    )


@on_linux
def test_a_process_that_is_killed_loses_no_result():
    assert ran("print(list(forks.mapped(die_there, range(200))) == list(range(200)))") == "True"
