"""Files that an agent asks us to read or write: only inside its workspace, also where a symbolic link leads out.

The path that counts is that of the opened file, so that nothing can be swapped between a check and its use.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path

from agentv.model.values.trace import Trace


def did_nothing(trace: Trace, root: str, moment: float) -> bool:
    """Whether the agent has changed nothing since a moment: no file of its workspace, nothing by an MCP tool.

    Times of change are read here, which any program can make new; the comparison of the workspace with its baseline
    decides again once the agent has ended.
    """
    return not trace.worked_elsewhere and not changed_since(root, moment)


FILE_LIMIT = 10_000_000
"""Bytes of a file that is read."""


class OutsideWorkspaceError(Exception):
    """A path leads out of the workspace."""


class NoFileError(Exception):
    """There is no such regular file, or it cannot be read or written."""


def inside(root: str, path: str) -> str:
    """The true path of a file or directory in the workspace.

    Raises:
        OutsideWorkspaceError: it is outside.
    """
    true_root = os.path.realpath(root)
    if "\0" in path:
        raise OutsideWorkspaceError(path)
    found = os.path.realpath(os.path.join(true_root, path))  # noqa: PTH118  # text in, text out
    if found != true_root and not found.startswith(true_root + os.sep):
        raise OutsideWorkspaceError(path)
    return found


def read_text(root: str, path: str, line: int | None = None, limit: int | None = None) -> str:
    """The text of a file.

    Args:
        root: of the workspace.
        path: absolute, or relative to the root.
        line: the first line that is wanted, from 1.
        limit: how many lines.

    Raises:
        OutsideWorkspaceError: it is outside.
        NoFileError: it cannot be read.
    """
    place = inside(root, path)
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise NoFileError(f"{path}: {getattr(error, 'strerror', error)}") from None
    try:
        _check(descriptor, root, path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(FILE_LIMIT + 1)
    finally:
        os.close(descriptor)
    if len(data) > FILE_LIMIT:
        raise NoFileError(f"{path}: more than {FILE_LIMIT // 1_000_000} MB")
    text = data.decode(errors="replace")
    if line is None and limit is None:
        return text
    first = max(line or 1, 1) - 1
    return "".join(islice(text.splitlines(keepends=True), first, None if limit is None else first + limit))


def write_text(root: str, path: str, text: str) -> None:
    """Write a file; directories on the way are made.

    Raises:
        OutsideWorkspaceError: it is outside.
        NoFileError: it cannot be written.
    """
    place = Path(inside(root, path))
    flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        parent = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _check_place(parent, root, path)
            descriptor = os.open(place.name, flags, 0o666, dir_fd=parent)
        finally:
            os.close(parent)
        try:
            _check(descriptor, root, path)
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.truncate(0)
                file.write(text.encode(errors="surrogateescape"))
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise NoFileError(f"{path}: {getattr(error, 'strerror', error)}") from None


def file_clock() -> float:
    """Now in seconds, by the clock of the file system: on Linux, changes get the time of the last tick."""
    coarse = getattr(time, "CLOCK_REALTIME_COARSE", None)
    return time.time() if coarse is None else time.clock_gettime(coarse)


def changed_since(root: str, moment: float) -> bool:
    """Whether anything in a directory was changed since a moment of `file_clock`. `.git` does not count.

    The times of last change of a status (`ctime`) are read: no program can set them back.
    """
    todo = [root]
    while todo:
        directory = todo.pop()
        with suppress(OSError):
            if os.stat(directory).st_ctime >= moment:  # noqa: PTH116  # the hot loop
                return True
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.name == ".git":
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    elif entry.stat(follow_symlinks=False).st_ctime >= moment:
                        return True
    return False


def _check(descriptor: int, root: str, path: str) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise NoFileError(f"{path}: not a regular file")
    _check_place(descriptor, root, path)


def _check_place(descriptor: int, root: str, path: str) -> None:
    """Where the system says what file was opened, that file has to be inside."""
    with suppress(FileNotFoundError):
        found = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115  # no path of the file system
        true_root = os.path.realpath(root)
        if found != true_root and not found.startswith(true_root + os.sep):
            raise OutsideWorkspaceError(path)
