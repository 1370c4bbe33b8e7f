"""Disk space that the directories of a trial take."""

from __future__ import annotations

import os
from collections.abc import Iterable

from agentv.extensions.agents.workspaces.files.removing import make_writable

MEGABYTE = 1_000_000
_BLOCK = 512
_ENTRY = 4096
"""Bytes that an entry counts for at least: a million empty files fill a disk, too."""


def used_bytes(directories: Iterable[str], limit: int, *, accessible: bool = False) -> int:
    """Bytes on disk, counted until they are more than `limit`. It blocks, and follows no link.

    Args:
        directories: what is counted.
        limit: where counting stops.
        accessible: what its owner may not read is made readable, since nobody works in it any more.
    """
    total = 0
    todo = list(directories)
    while todo and total <= limit:
        directory = todo.pop()
        if accessible and not os.access(directory, os.R_OK | os.X_OK):
            make_writable(directory)
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    total += _size(entry)
                    if total > limit:
                        break
        except OSError:  # gone meanwhile, or unreadable for its owner
            continue
    return total


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return max(entry.stat(follow_symlinks=False).st_blocks * _BLOCK, _ENTRY)
    except OSError:
        return 0
