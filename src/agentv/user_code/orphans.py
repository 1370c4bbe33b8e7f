"""Processes that lost their parent: found by the call that they were started for, and ended.

On Linux the process of a command adopts every process that loses its parent below it (PR_SET_CHILD_SUBREAPER), also one
in a session of its own. Elsewhere only process groups can be ended (`processes.py`).
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
"""Variable of every program that is started for a call: which run, and which call of it."""

_RUN = os.urandom(8).hex()
_calls = count(1)
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # of <linux/prctl.h>
_KILL_TIMEOUT_S = 2.0
_LOOK_S = 0.002
_adopted: list[int] = []
"""The process that adopts, which is this one, unless this is a fork of it."""

_killed: set[int] = set()
"""Orphans that were killed, and whose status nobody has asked for yet."""


def adopt_orphans() -> None:
    """Have all processes below this one that lose their parent become its children, and show which run they are of."""
    os.environ[MARK] = f"{_RUN}.0"
    if sys.platform != "linux":
        return
    with suppress(ImportError, OSError, AttributeError):
        _prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _adopted[:] = [os.getpid()]


def kill_with_parent() -> None:
    """Have this process killed when the thread that started it ends, on Linux."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):
            _prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _prctl(*arguments: int) -> None:
    """Call the C library, at the start of each command: `ctypes` takes as long to load as all that stands in front."""
    from _ctypes import call_function, dlopen, dlsym

    program = dlopen(None, 0)  # type: ignore[arg-type]  # None is this program, and its libraries
    call_function(dlsym(program, "prctl"), arguments)


def marked(environment: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
    """An environment for the programs of one call, and the mark by which they are found again."""
    if not _adopted:
        return dict(environment), b""
    mark = f"{_RUN}.{next(_calls)}"
    return {**environment, MARK: mark}, f"{MARK}={mark}\0".encode()


def end_orphans(mark: bytes, started: Container[int]) -> bool:
    """Kill what was started for a call and lost its parent; whether there was anything.

    Args:
        mark: of the call, which has ended.
        started: children that are no orphans, and are not looked at.
    """
    if not _adopted or not mark:
        return False
    found = [one for one in _children() if one not in started]
    ours = {one for one in found if _shows(one, mark)}
    if ours:
        _killed.update(ours)
        for one in tree_of(ours, {one: _parent_of(one) for one in _processes()}):
            _kill(one)
    own_session = os.getsid(0)
    for one in found:
        state, _, session = _status(one)
        if state == b"Z" and (one in _killed or session not in (own_session, one)):  # of these, nobody else asks
            _killed.discard(one)
            with suppress(ChildProcessError):
                os.waitpid(one, os.WNOHANG)
    return bool(ours)


def end_all_children() -> None:
    """Kill all children of this process, and theirs, which become its own as theirs end."""
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    while time.monotonic() < deadline:
        for child in _children():
            _kill(child)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(_LOOK_S)
            continue
        return


def end_all_programs() -> None:
    """Kill all that shows that it was started by this run, and what is below it. For when the run has been killed."""
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    run = f"{MARK}={_RUN}.".encode()
    while time.monotonic() < deadline:
        ours = {one for one in _processes() if _shows(one, run)} - {os.getpid()}
        if not ours:
            return
        for one in tree_of(ours, {one: _parent_of(one) for one in _processes()}):
            _kill(one)
        time.sleep(_LOOK_S)


def tree_of(roots: Iterable[int], parents: Mapping[int, int]) -> set[int]:
    """Processes and all that is below them.

    Args:
        roots: where to begin.
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
    """The processes that the main thread started, or that were adopted; elsewhere all children."""
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children", "rb") as file:  # noqa: PTH123  # pathlib is loaded by nobody yet
            return [int(one) for one in file.read().split()]
    except OSError:
        return [one for one in _processes() if _parent_of(one) == own]


def _kill(process: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)


def _processes() -> Iterator[int]:
    try:
        return (int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208  # as above
    except OSError:
        return iter(())


def _parent_of(process: int) -> int:
    """0 where it is gone."""
    return _status(process)[1]


def _status(process: int) -> tuple[bytes, int, int]:
    """State, parent and session of a process. Source: proc(5), /proc/pid/stat."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123  # as above
            state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
    except (OSError, ValueError):
        return b"", 0, 0
    return state, int(parent), int(session)


def _shows(process: int, mark: bytes) -> bool:
    """Whether a process was started with a variable that begins so. One that has ended shows none."""
    try:
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123  # as above
            return mark in file.read()
    except OSError:
        return False
