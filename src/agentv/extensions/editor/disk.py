"""Reading of files in the server's own process, which must neither wait nor fill its memory, and where it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from errno import EFBIG, EINVAL
from pathlib import Path
from stat import S_ISREG

from agentv.authoring.source.boundary import Boundary

MOST_BYTES = 5_000_000
"""Size of a file whose names are read; ten thousand cases are half of it."""


def bytes_of(
    path: str, edits: Mapping[str, bytes], boundary: Boundary | None = None, *, most: int = MOST_BYTES
) -> bytes:
    """The bytes of a file as it is in the editor, else on disk.

    Args:
        path: absolute.
        edits: absolute path → text of each open file.
        boundary: what may be read from disk; None: everything.
        most: bytes that it may have.

    Raises:
        OSError: it cannot be read, is no regular file, or is too large (`EFBIG`).
    """
    data = edits.get(path)
    if data is None:
        if boundary is not None:
            boundary.check(path)
        data = _read(path, most)
    if len(data) > most:
        raise OSError(EFBIG, "the file is too large", path)
    return data


def leave_deleted_directory() -> None:
    """Go to the file system's root if the working directory is gone: a branch that lacks it may be checked out."""
    try:
        os.getcwd()  # noqa: PTH109  # for every request
    except FileNotFoundError:
        os.chdir(os.sep)


def _read(path: str, most: int) -> bytes:
    if S_ISREG(Path(path).stat().st_mode):  # to open a device can have an effect
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            if S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(most + 1)
    raise OSError(EINVAL, "it is a device or a pipe, expected a file", path)
