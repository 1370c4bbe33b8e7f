"""Permissions of files that agents wrote."""

from __future__ import annotations

import os
import stat
from contextlib import suppress


def make_accessible(folder: int, name: str | bytes, bits: int) -> None:
    """Give its owner access to a file or directory, but not through a link."""
    with suppress(OSError):
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISLNK(mode) and mode & bits != bits:
                os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(mode) | bits)  # noqa: PTH101  # no path
        finally:
            os.close(descriptor)
