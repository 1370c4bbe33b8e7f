"""Orphaned processes, found by the call that started them, and killed.

On Linux, the process of a command adopts every orphan among its descendants (PR_SET_CHILD_SUBREAPER), even one with its
own session. On other systems only process groups can be killed (`processes.py`).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count

MARK = "AGENTV_STARTED_BY"
"""Environment variable of every program that is started for a call, with the ids of the run and the call."""

_RUN = os.urandom(8).hex()
_calls = count(1)
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # from <linux/prctl.h>
_KILL_TIMEOUT_S = 2.0
_POLL_S = 0.002
_adopter: list[int] = []
"""The process id of the command that adopts orphans, if this is that process or a fork of it."""

_killed: set[int] = set()
"""Orphans that were killed but not yet reaped."""


def adopt_orphans() -> None:
    """Make this process adopt all orphans among its descendants, and mark them with the run."""
    os.environ[MARK] = f"{_RUN}.0"
    if sys.platform != "linux":
        return
    with suppress(ImportError, OSError, AttributeError):
        _prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _adopter[:] = [os.getpid()]


def kill_with_parent() -> None:
    """On Linux, make the kernel kill this process when the thread that started it ends."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):
            _prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _prctl(*arguments: int) -> None:
    """Call `prctl` of the C library, without `ctypes`, whose import would double the startup time up to here."""
    from _ctypes import call_function, dlopen, dlsym

    program = dlopen(None, 0)  # type: ignore[arg-type]  # None is this program with its libraries
    call_function(dlsym(program, "prctl"), arguments)


def marked(environment: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
    """Return the environment for the programs of one call, and the mark that identifies them."""
    if not _adopter:
        return dict(environment), b""
    mark = f"{_RUN}.{next(_calls)}"
    return {**environment, MARK: mark}, f"{MARK}={mark}\0".encode()


def end_orphans(mark: bytes, started: Container[int]) -> bool:
    """Kill the orphans of a call that has ended. Return whether there were any.

    Args:
        mark: the call's mark.
        started: direct children, which are not orphans and are left alone.
    """
    if not _adopter or not mark:
        return False
    found = [one for one in _children() if one not in started]
    ours = {one for one in found if _has_mark(one, mark)}
    if ours:
        _killed.update(ours)
        for one in tree_of(ours, {one: _parent_of(one) for one in _processes()}):
            _kill(one)
    own_session = os.getsid(0)
    for one in found:
        state, _, session = _status(one)
        if state == b"Z" and (
            one in _killed or session not in (own_session, one)
        ):  # only these: others are reaped by their owners
            _killed.discard(one)
            with suppress(ChildProcessError):
                os.waitpid(one, os.WNOHANG)
    return bool(ours)


def end_all_children() -> None:
    """Kill all descendants of this process. Grandchildren become its children when their parents end."""
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    while time.monotonic() < deadline:
        for child in _children():
            _kill(child)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(_POLL_S)
            continue
        return


def end_all_programs() -> None:
    """Kill all processes that this run started, and their descendants, after the run itself was killed."""
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    run = f"{MARK}={_RUN}.".encode()
    while time.monotonic() < deadline:
        ours = {one for one in _processes() if _has_mark(one, run)} - {os.getpid()}
        if not ours:
            return
        for one in tree_of(ours, {one: _parent_of(one) for one in _processes()}):
            _kill(one)
        time.sleep(_POLL_S)


def tree_of(roots: Iterable[int], parents: Mapping[int, int]) -> set[int]:
    """Return processes with all their descendants.

    Args:
        roots: the processes to start from.
        parents: process → its parent.
    """
    below = defaultdict(list)
    for one, parent in parents.items():
        below[parent].append(one)
    found, todo = set[int](), list(roots)
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += below[one]
    return found


def _children() -> list[int]:
    """Return the processes that the main thread started or that were adopted; without that file, all children."""
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children", "rb") as file:  # noqa: PTH123  # avoids the import of pathlib
            return [int(one) for one in file.read().split()]
    except OSError:
        return [one for one in _processes() if _parent_of(one) == own]


def _kill(process: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)


def _processes() -> Iterator[int]:
    try:
        return (int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208
    except OSError:
        return iter(())


def _parent_of(process: int) -> int:
    """Return the parent of a process, or 0 if the process has ended."""
    return _status(process)[1]


def _status(process: int) -> tuple[bytes, int, int]:
    """Return the state, parent and session of a process. Source: proc(5), /proc/pid/stat."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123
            state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
    except (OSError, ValueError):
        return b"", 0, 0
    return state, int(parent), int(session)


def _has_mark(process: int, mark: bytes) -> bool:
    """Whether the environment of a process contains the mark. A process that has ended has no environment."""
    try:
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123
            return mark in file.read()
    except OSError:
        return False
