"""agentv's own file descriptors: forks of user code cannot hold, read or write them.

Nor does code in this process reach them that closes or writes to every number it can think of: theirs are high ones.
"""

from __future__ import annotations

import os
from contextlib import suppress

_STANDARD = 3
_LOWEST = 4096
_HIGHEST = 16_000
"""The system copies a table as long as the highest number for every process that is started."""
_ROOM = 128
_own: set[int] = set()
_registered = False


def keep_private(descriptor: int) -> int:
    """Give a file a high number, which every fork from now on sees as /dev/null; that number. The old one is closed.

    A fork would share the lock of a journal, or hold the pipe open that somebody reads to its end. Closing it there
    would be no help: the number would be given to the next file that is opened, and our objects would write into it.
    Programs that are started never see it: descriptors are not inherited over exec.
    """
    return keep_from_forks(_moved_up(descriptor))


def keep_from_forks(descriptor: int) -> int:
    """The same, where the number stays."""
    global _registered  # noqa: PLW0603  # a hook can be set once in a process, and never taken back
    if not _registered:
        os.register_at_fork(after_in_child=_close_all)
        _registered = True
    _own.add(descriptor)
    return descriptor


def _moved_up(descriptor: int) -> int:
    """The file under a number above all that the limit lets users' code open, where that can be had.

    A limit binds when a number is given out, and not later: it is raised for this one call.
    """
    import fcntl
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    known = [one for one in (hard, _HIGHEST + _ROOM) if one != resource.RLIM_INFINITY]
    lowest = min(max(soft, _LOWEST) if soft != resource.RLIM_INFINITY else _HIGHEST, min(known) - _ROOM)
    raised = soft not in (resource.RLIM_INFINITY, hard) and soft < lowest + _ROOM
    with suppress(OSError, ValueError):
        if raised:
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + _ROOM, hard))
        try:
            moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(_STANDARD, lowest))
        finally:
            if raised:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(descriptor)
        return moved
    return descriptor


def close_private(descriptor: int) -> None:
    """Close a descriptor that `keep_private` returned."""
    _own.discard(descriptor)
    os.close(descriptor)


def above_standard(descriptor: int) -> int:
    """The same file under a number that nobody prints to by accident."""
    if descriptor >= _STANDARD:
        return descriptor
    import fcntl

    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _STANDARD)
    finally:
        os.close(descriptor)


def fill_standard() -> None:
    """Have /dev/null stand where a standard stream is closed, so that no file of ours gets its number."""
    for number in range(_STANDARD):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)


def _close_all() -> None:
    if not _own:
        return
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for descriptor in _own:
        with suppress(OSError):
            os.dup2(null, descriptor, inheritable=False)
    os.close(null)
    _own.clear()
