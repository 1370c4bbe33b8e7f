"""Starts runs in processes of their own and kills them at random moments, until each has come to its end.

A program: `killed_runs.py KILLS SEED SIGNAL`, in the directory of an `a.eval.yaml`. Processes are forked, so that what
takes a third of a second, reading agentv's own code, is done once. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from agentv.app.registries import registries
from agentv.app.running import evaluate  # noqa: F401  # read before the first fork
from agentv.cli.main import run

ARGUMENTS = ["eval", "a.eval.yaml", "--workers", "4", "--no-progress"]
LONGEST_S = 0.35


def begun(arguments: list[str]) -> int:
    """A process that runs this command."""
    pid = os.fork()
    if pid:
        return pid
    with Path("stderr.txt").open("a") as log:
        os.dup2(log.fileno(), 2)
    status = 70
    with suppress(BaseException):
        status = run(arguments)
    os._exit(status)


def ended(pid: int, after_s: float, number: int) -> int | None:
    """The exit status of a process; None where a signal ended it, which was sent after some time."""
    deadline = time.monotonic() + after_s
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    os.kill(pid, number)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None if status in (-number, 130) else status


def main(kills: int, seed: int, number: int) -> None:
    """Print how many kills there were, and of every run its directory and how often it was killed."""
    registries()
    chance = random.Random(seed)  # moments, and no secrets
    runs: list[dict[str, object]] = []
    while sum(int(str(one["kills"])) for one in runs) < kills:
        out = f"run-{len(runs)}"
        killed = 0
        while True:
            os.environ["OUT"] = out  # the target notes its calls beside it
            resume = ["--resume"] if (Path(out) / "run.json").exists() else []
            status = ended(begun([*ARGUMENTS, "--out", out, *resume]), chance.uniform(0, LONGEST_S), number)
            if status is not None:
                break
            killed += 1
        runs.append({"out": out, "kills": killed, "status": status})
    print(json.dumps(runs))  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), signal.Signals[sys.argv[3]])
