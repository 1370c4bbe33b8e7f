"""Starts runs in processes of their own and kills them at random moments, until each has come to its end.

A program: `killed_runs.py KILLS SEED SIGNAL`, in the directory of an `a.eval.yaml`. Processes are forked, so that what
takes a third of a second, importing agentv, is done once. Prints one JSON object.
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
"""Kills of one run: it is left alone then, so that it ends however slow the machine is."""


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


def ended(pid: int, after_s: float | None, number: int) -> int | None:
    """The exit status of a process; None where a signal ended it, which was sent after some time."""
    process = os.pidfd_open(pid)
    done, _, _ = select.select([process], (), (), after_s)
    os.close(process)
    if not done:
        os.kill(pid, number)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None if not done and status in (-number, 130) else status


def run_with(out: str, after_s: float | None, number: int) -> int | None:
    """The exit status of a run, begun or resumed; None where it was killed."""
    os.environ["OUT"] = out  # the target notes its calls beside it
    resume = ["--resume"] if (Path(out) / "run.json").exists() else []
    return ended(begun([*ARGUMENTS, "--out", out, *resume]), after_s, number)


def imported_by_a_run() -> list[str]:
    """The names of modules that a run imports, in the order in which it does."""
    before = set(sys.modules)
    with Path("stderr.txt").open("a") as log:
        os.dup2(log.fileno(), 2)
    os.environ["OUT"] = "imported"
    run([*ARGUMENTS, "--out", "imported"])
    return [name for name in sys.modules if name not in before]


def undisturbed_s(out: str) -> float:
    """How long a whole run takes here and now."""
    start = time.monotonic()
    run_with(out, None, signal.SIGKILL)
    return time.monotonic() - start


def main(kills: int, seed: int, number: int) -> None:
    """Print how many kills there were, and of every run its directory and how often it was killed."""
    import_agentv(imported_by_a_run)
    gc.freeze()
    chance = random.Random(seed)  # moments, and no secrets
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
