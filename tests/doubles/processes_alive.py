"""Check from outside, by recorded process ids, whether processes have ended."""

import subprocess
import time
from pathlib import Path

from doubles.waiting import until

START_S = 120.0
"""Timeout for programs to start, also on a machine that runs other tests."""

WITHIN_S = 20.0
"""Timeout for the kernel to remove killed processes."""


def ids_in(file: Path, count: int) -> list[int]:
    """Return the process ids in a file, one per line, once it has `count` of them."""
    until(lambda: file.exists() and len(file.read_text().split()) >= count, START_S)
    return [int(line) for line in file.read_text().split()]


def alive(process: int) -> bool:
    """Whether a process is running; a zombie is not."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1] not in {"", "Z"}


def all_gone(processes: list[int]) -> bool:
    deadline = time.monotonic() + WITHIN_S
    while any(map(alive, processes)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
