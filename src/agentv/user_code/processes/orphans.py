"""Processes whose parent has ended: found, distinguished by what they belong to, and ended.

The process in front (`supervisor.py`) is given every process that loses its parent anywhere below it
(Linux: PR_SET_CHILD_SUBREAPER), also one in a session of its own. So its children are: the process that runs the
command, and all that was left behind. Elsewhere only process groups can be ended (`processes.py`).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count

from agentv.user_code.processes.descriptors import keep_private

MARK = "AGENTV_STARTED_BY"
"""Variable of every program that is started for a call: which run, and which call of it."""

_RUN = os.urandom(8).hex()
_calls = count(1)
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # of <linux/prctl.h>
_KILL_TIMEOUT_S = 2.0
_LOOK_S = 0.002


def adopt_orphans() -> None:
    """Have all processes below this one that lose their parent become its children. Nothing where that cannot be."""
    if sys.platform != "linux":
        return
    with suppress(ImportError, OSError, AttributeError):
        _prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_with_parent() -> None:
    """Have this process killed when the thread that started it ends. Nothing where that cannot be."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):
            _prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _prctl(*arguments: int) -> None:
    """Call the C library, at the start of each command: `ctypes` takes as long to load as all that stands in front."""
    try:
        from _ctypes import call_function, dlopen, dlsym
    except ImportError:  # of another Python than CPython
        import ctypes

        ctypes.CDLL(None).prctl(*arguments)
        return
    program = dlopen(None, 0)  # type: ignore[arg-type]  # None is this program, and its libraries
    call_function(dlsym(program, "prctl"), arguments)


def end_all_children() -> None:
    """Kill all children of this process, and theirs, which become its own as theirs end."""
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    while time.monotonic() < deadline:
        for child in children_of(os.getpid()):
            _kill(child)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(_LOOK_S)
            continue
        return


def children_of(process: int) -> list[int]:
    """The children of a process with one thread."""
    try:
        with open(f"/proc/{process}/task/{process}/children", "rb") as file:  # noqa: PTH123  # pathlib is loaded by nobody yet
            return [int(one) for one in file.read().split()]
    except OSError:
        return [one for one in _processes() if _parent_of(one) == process]


def mark_this_process() -> None:
    """Have programs that users' code starts by itself show which run they belong to."""
    os.environ[MARK] = f"{_RUN}.0"


def end_all_programs() -> None:
    """Kill all that was started below this process, whether its parent lives or not. For when nothing is in front."""
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    run = f"{MARK}={_RUN}.".encode()
    while time.monotonic() < deadline:
        parents = {one: _parent_of(one) for one in _processes()}
        ours = {one for one in parents if one != os.getpid() and _shows(one, run)}
        found = tree_of({os.getpid(), *ours}, parents) - {os.getpid()}
        for one in found:
            _kill(one)
        if not found:
            return
        time.sleep(_LOOK_S)


class Leftovers:
    """Ends what trials leave behind, given the processes that have become children of the one in front.

    A program of a call carries the mark of that call, and ends with it. Any other orphan may be of each trial that ran
    when it was first seen, since users' functions share this process: it ends with the last of them. What users' code
    started here and holds (a pool, a server) is no orphan: it serves later trials, and ends with the run.

    Args:
        front: the process in front; None: there is none, and nothing is ever found.
        watch: its other child, which was started before this process.
    """

    def __init__(self, front: int | None, watch: int = 0) -> None:
        self._expected = {watch, os.getpid()}
        self._alone = "".join(f"{one} " for one in (watch, os.getpid()) if one).encode()
        self._file: int | None = None
        self._trials = count()
        self._running: set[int] = set()
        self._owners: dict[int, set[int]] = {}
        if front is not None:
            with suppress(OSError):
                file = os.open(f"/proc/{front}/task/{front}/children", os.O_RDONLY | os.O_CLOEXEC)
                self._file = keep_private(file)

    def marked(self, environment: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
        """An environment for the programs of one call, and the mark by which they are found again."""
        if self._file is None:
            return dict(environment), b""
        mark = f"{_RUN}.{next(_calls)}"
        return {**environment, MARK: mark}, f"{MARK}={mark}\0".encode()

    def begin(self) -> int:
        """A trial begins; its number."""
        trial = next(self._trials)
        self._running.add(trial)
        return trial

    def end(self, trial: int) -> None:
        """A trial has ended."""
        found = self.found()
        for one in found:
            if one not in self._owners:
                self._owners[one] = set(self._running)
        self._running.discard(trial)
        if self._owners:
            self._end_ownerless(trial, found)

    def _end_ownerless(self, trial: int, found: list[int]) -> None:
        self._owners = {one: owners - {trial} for one, owners in self._owners.items() if one in found}
        ownerless = {one for one, owners in self._owners.items() if not owners}
        if ownerless:
            _kill_trees(ownerless)

    def of_call(self, mark: bytes) -> set[int]:
        """The orphans that carry the mark of a call. They are sent the signal to end."""
        ours = {one for one in self.found() if _shows(one, mark)}
        if ours:
            _kill_trees(ours)
        return ours

    def found(self) -> list[int]:
        """All orphans of this run."""
        if self._file is None:
            return []
        try:
            children = os.pread(self._file, 1 << 16, 0)
        except OSError:
            return []
        if children == self._alone:
            return []
        return [one for one in map(int, children.split()) if one not in self._expected]


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


def _kill_trees(roots: set[int]) -> None:
    for one in tree_of(roots, {one: _parent_of(one) for one in _processes()}):
        _kill(one)


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
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123  # as above
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _shows(process: int, mark: bytes) -> bool:
    """Whether a process was started with a variable that begins so. One that has ended shows none."""
    try:
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123  # as above
            return mark in file.read()
    except OSError:
        return False
