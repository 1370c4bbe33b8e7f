"""Absolute paths in the files that setup made: those of the prepared workspace become those of the trial.

A virtual environment, an editable install or a build directory names its own place in scripts, `.pth` files, links and
binaries. In a copy they would lead back to the prepared workspace, so that tests would run on its files and not on the
agent's. Both places have names of one length, so that binaries can be changed, too.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterable


def files_naming(directory: str, place: str) -> tuple[bytes, ...]:
    """The files and links of a directory that contain a path, relative to it. It blocks."""
    wanted, found = os.fsencode(place), []
    for folder, directories, files in os.walk(os.fsencode(directory)):
        for name in (*directories, *files):
            path = os.path.join(folder, name)  # noqa: PTH118  # thousands of them
            if _names(path, wanted):
                found.append(os.path.relpath(path, os.fsencode(directory)))
    return tuple(found)


def relocate(directory: str, files: Iterable[bytes], old: str, new: str) -> None:
    """Replace a path by another of the same length in files of a directory; their times stay. It blocks.

    Raises:
        ValueError: the paths differ in length.
        OSError: a file cannot be written.
    """
    before, after = os.fsencode(old), os.fsencode(new)
    if len(before) != len(after):
        raise ValueError("paths of different length")
    for name in files:
        path = os.path.join(os.fsencode(directory), name)  # noqa: PTH118  # as bytes
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(path)  # noqa: PTH115  # as bytes
            os.unlink(path)  # noqa: PTH108  # as bytes
            os.symlink(target.replace(before, after), path)  # noqa: PTH211  # as bytes
        else:
            _rewrite(path, before, after, found)
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns), follow_symlinks=False)


def _names(path: bytes, wanted: bytes) -> bool:
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return wanted in os.readlink(path)  # noqa: PTH115  # as bytes
        if not stat.S_ISREG(found.st_mode) or found.st_size < len(wanted):
            return False
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:  # noqa: PTH123  # as bytes
            return data.find(wanted) >= 0
    except OSError:
        return False


def _rewrite(path: bytes, before: bytes, after: bytes, found: os.stat_result) -> None:
    mode = stat.S_IMODE(found.st_mode)
    os.chmod(path, mode | stat.S_IRUSR | stat.S_IWUSR)  # noqa: PTH101  # as bytes
    with open(path, "r+b") as file:  # noqa: PTH123  # as bytes
        data = file.read().replace(before, after)
        file.seek(0)
        file.write(data)
    os.chmod(path, mode)  # noqa: PTH101  # as bytes
