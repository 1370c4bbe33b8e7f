"""A fork behaves like a start of the installed command, as the other end-to-end tests assume."""

import json
import shutil

from agentv.user_code.orphans import MARK
from e2e.fork_server import can_fork

AGENT = """
import json, os, signal, sys, threading

def answer(prompt):
    return json.dumps({
        "directory": os.getcwd(),
        "environment": dict(os.environ),
        "arguments": sys.argv,
        "path": sys.path,
        "main": str(sys.modules["__main__"].__spec__),
        "input": sys.stdin.read(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "handlers": {number: str(signal.getsignal(number)).split(" at ")[0] for number in signal.valid_signals()},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "mine": sorted(name for name in sys.modules if name.startswith("e2e")),
    })
"""
SUITE = "target: python:agent.py:answer\ntests:\n  - {id: a, input: hello, assert: [contains: '{']}\n"


def found(project, **how):
    """Return what user code finds in its process."""
    assert project.run("eval", "a.eval.yaml", "--out", "out", env={"OF_THE_TEST": "yes"}, **how).status == 0
    (row,) = project.rows("out")
    shutil.rmtree(project.path / "out")
    return json.loads(row["output"])


def test_code_finds_the_same_in_a_fork_as_in_a_start_but_its_mark(project):
    project.write_files({"agent.py": AGENT, "a.eval.yaml": SUITE})
    fork, other, start = found(project), found(project), found(project, fresh=True)
    marks = {one["environment"].pop(MARK) for one in (fork, other, start)}
    assert fork == other == start
    assert (fork["environment"]["OF_THE_TEST"], fork["mine"]) == ("yes", [])
    assert len(marks) == 3  # they distinguish the programs of two commands


def test_what_python_reads_when_it_starts_needs_a_start(project):
    assert can_fork(project.environment)
    assert not can_fork({**project.environment, "PYTHONUTF8": "0"})
    assert not can_fork({**project.environment, "LC_ALL": "C"})
