"""agentv's own file descriptors: forks of this process cannot hold, read or write them."""

from __future__ import annotations

import os
from contextlib import suppress

_STANDARD = 3
_own: set[int] = set()
_registered = False


def keep_private(descriptor: int) -> int:
    """Have every fork from now on see a file as /dev/null; its number.

    A fork would share the lock of a journal, or hold the pipe open that somebody reads to its end. Closing it there
    would be no help: the number would be given to the next file that is opened, and our objects would write into it.
    Programs that are started never see it: descriptors are not inherited over exec.
    """
    global _registered  # noqa: PLW0603  # a hook can be set once in a process, and never taken back
    if not _registered:
        os.register_at_fork(after_in_child=_close_all)
        _registered = True
    os.set_inheritable(descriptor, False)  # its only form
    _own.add(descriptor)
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
