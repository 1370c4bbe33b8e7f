"""Starts runs in their own processes and kills them at random moments, until each is complete.

Usage: `killed_runs.py KILLS SEED SIGNAL` in a directory with an `a.eval.yaml`. Prints one JSON object. Processes are
forked, so that agentv, whose import takes a third of a second, is imported only once.
"""

import gc
import json
import os
import random
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from agentv.cli.main import run

sys.path.append(str(Path(__file__).parents[1]))
from e2e.fork_server import import_agentv

ARGUMENTS = ["eval", "a.eval.yaml", "--workers", "4", "--no-progress"]
MOST = 5
"""Most kills of one run, after which it is left to finish even on a slow machine."""


def start_process(arguments: list[str]) -> int:
    """Fork a process that runs this command and return its id."""
    pid = os.fork()
    if pid:
        return pid
    with Path("stderr.txt").open("a") as log:
        os.dup2(log.fileno(), 2)
    status = 70
    with suppress(BaseException):
        status = run(arguments)
    os._exit(status)


def wait_or_kill(pid: int, after_s: float | None, number: int) -> int | None:
    """Return the exit status of a process, or None if the signal sent after `after_s` ended it."""
    process = os.pidfd_open(pid)
    done, _, _ = select.select([process], (), (), after_s)
    os.close(process)
    if not done:
        os.kill(pid, number)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None if not done and status in (-number, 130) else status


def run_with(out: str, after_s: float | None, number: int) -> int | None:
    """Start or resume a run; return its exit status, or None if it was killed."""
    os.environ["OUT"] = out  # the target writes its calls next to it
    resume = ["--resume"] if (Path(out) / "run.json").exists() else []
    return wait_or_kill(start_process([*ARGUMENTS, "--out", out, *resume]), after_s, number)


def imported_by_a_run() -> list[str]:
    """Return the names of the modules that a run imports, in order."""
    before = set(sys.modules)
    with Path("stderr.txt").open("a") as log:
        os.dup2(log.fileno(), 2)
    os.environ["OUT"] = "imported"
    run([*ARGUMENTS, "--out", "imported"])
    return [name for name in sys.modules if name not in before]


def undisturbed_s(out: str) -> float:
    start = time.monotonic()
    run_with(out, None, signal.SIGKILL)
    return time.monotonic() - start


def main(kills: int, seed: int, number: int) -> None:
    """Print the number of kills, and for each run its directory and how often it was killed."""
    import_agentv(imported_by_a_run)
    gc.freeze()
    chance = random.Random(seed)  # moments, not secrets
    latest_s = min(undisturbed_s(f"undisturbed-{one}") for one in range(2))
    runs: list[dict[str, object]] = []
    left = kills
    while left:
        out, killed, status = f"run-{len(runs)}", 0, None
        while status is None:
            after_s = chance.uniform(0, latest_s) if killed < min(left, MOST) else None
            status = run_with(out, after_s, number)
            killed += status is None
        left -= killed
        runs.append({"out": out, "kills": killed, "status": status})
    print(json.dumps(runs))  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), signal.Signals[sys.argv[3]])
