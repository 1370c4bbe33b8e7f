"""Whether processes are gone, seen from outside: by the ids that they wrote down themselves."""

import subprocess
import time
from pathlib import Path

from doubles.waiting import until

START_S = 120.0
"""How long is waited for programs to start: a machine that runs other tests too takes its time."""

WITHIN_S = 20.0
"""How long is waited for the kernel to bury what was killed."""


def ids_in(file: Path, count: int) -> list[int]:
    """The process ids, one a line, once there are so many."""
    until(lambda: file.exists() and len(file.read_text().split()) >= count, START_S)
    return [int(line) for line in file.read_text().split()]


def alive(process: int) -> bool:
    """Whether it runs. One that ended and that nobody has asked after yet does not."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1] not in {"", "Z"}


def all_gone(processes: list[int]) -> bool:
    deadline = time.monotonic() + WITHIN_S
    while any(map(alive, processes)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
