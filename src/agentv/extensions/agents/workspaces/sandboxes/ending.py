"""End of all processes of a trial, found by the mark in their environment and by what is below them."""

from __future__ import annotations

import os
import signal
import time

from agentv.extensions.agents.workspaces.environment import MARK
from agentv.extensions.agents.workspaces.sandboxes import launcher

LONGEST_S = 30.0
"""Seconds after which processes that cannot be killed are reported."""

_POLL_S = 0.01


def end_processes(directory: str, grace_s: float = launcher.GRACE_S) -> bool:
    """End all processes of a trial; whether nothing is left. It blocks.

    Args:
        directory: of the trial, or of a run.
        grace_s: seconds between SIGTERM and SIGKILL.
    """
    started = time.monotonic()
    asked: set[int] = set()
    while found := processes_of(directory):
        waited = time.monotonic() - started
        if waited > grace_s + LONGEST_S:
            return False
        if waited > grace_s:
            launcher.kill_all(lambda: processes_of(directory))
        for one in found - asked:
            if launcher.name_of(one) != launcher.SANDBOX_PROGRAM:
                launcher.send(one, signal.SIGTERM)
        asked |= found
        time.sleep(_POLL_S)
    return True


def processes_of(directory: str) -> set[int]:
    """The processes of a trial that have not ended: those that carry its mark, and all below them.

    One without the mark that has lost its parent counts by its working directory: an agent that empties the
    environment of a daemon and kills what is above it leaves no other trace.
    """
    marks = tuple(f"\0{MARK}={directory}{end}".encode() for end in ("\0", os.sep))
    table = launcher.process_table()
    alive = {one for one, (_, state) in table.items() if state not in "ZX"} - {os.getpid()}
    roots = {one for one in alive if _carries(one, marks) or _is_stray(one, table[one][0], directory)}
    return (roots | launcher.alive_below(roots)) - {os.getpid()} if roots else set()


def _carries(process: int, marks: tuple[bytes, ...]) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123  # thousands of them
            environment = b"\0" + file.read()
            return any(mark in environment for mark in marks)
    except OSError:
        return False


def _is_stray(process: int, parent: int, directory: str) -> bool:
    """Whether a process whose parent has ended works in the directory of the trial."""
    if parent not in {1, os.getppid(), os.getpid()}:
        return False
    try:
        place = os.readlink(f"/proc/{process}/cwd")  # noqa: PTH115  # as above
    except OSError:
        return False
    return place == directory or place.startswith(directory + os.sep)
