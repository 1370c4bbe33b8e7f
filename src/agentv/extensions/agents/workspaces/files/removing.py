"""Removal of directories that agents wrote: read-only ones too, and never through links."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

_REMOVE_S = 600.0


def remove_directory(path: str) -> bool:
    """Remove a directory and all in it; whether it is gone. It blocks, and no process may write into it meanwhile."""
    top = Path(path)
    if top.is_symlink() or not top.is_dir():
        with suppress(OSError):
            top.unlink(missing_ok=True)
        return not os.path.lexists(path)
    with suppress(OSError, RecursionError):
        shutil.rmtree(path)
        return True
    make_writable(path)
    _run("rm", "-rf", "--", path)  # nested deeper than Python's stack
    return not os.path.lexists(path)


def remove_content(path: str) -> None:
    """Remove all that is in a directory, and leave the directory itself. It blocks."""
    with os.scandir(path) as entries:
        for entry in entries:
            remove_directory(entry.path)


def make_writable(path: str) -> None:
    """Let their owner read and change all directories and files below one. No link is followed."""
    _run("chmod", "-R", "u+rwX", "--", path)


def _run(*argv: str) -> None:
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(argv, check=False, capture_output=True, timeout=_REMOVE_S)
