"""The disk space that a trial may take, watched while its agent works."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from agentv.extensions.agents.workspaces.files.placing import make_writable
from agentv.extensions.agents.workspaces.sandboxes.process_group import Places
from agentv.model.values.response import Failure

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


INTERVAL_S = 1.0
_SHARE = 20
"""The watch takes at most one part in so many of the time."""


class Quota:
    """The watch over one trial. It begins at once.

    Args:
        places: what is counted.
        max_mb: how much it may be.
        end: ends all processes of the trial.
        watched: whether it is: a directory of the user's own is not.
    """

    def __init__(self, places: Places, max_mb: int, end: Callable[[float], bool], *, watched: bool) -> None:
        self._places = places
        self._max_mb = max_mb
        self._end = end
        self._watched = watched
        self._too_large = False
        self._watching = asyncio.ensure_future(self._watch()) if watched else None

    async def exceeded(self) -> Failure | None:
        """The failure of a trial that took too much, now or before; the watch is over."""
        await self.stop()
        if self._watched and (self._too_large or await asyncio.to_thread(self._is_too_large, ended=True)):
            message = f"the workspace, HOME and temporary files grew to more than {self._max_mb:,} MB"
            return Failure("workspace-too-large", message)
        return None

    async def stop(self) -> None:
        """End the watch."""
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
            self._watching = None

    async def _watch(self) -> None:
        taken_s = 0.0
        while not self._too_large:
            await asyncio.sleep(max(INTERVAL_S, taken_s * _SHARE))
            began = time.monotonic()
            self._too_large = await asyncio.to_thread(self._is_too_large)
            taken_s = time.monotonic() - began
        await asyncio.to_thread(self._end, 0.0)

    def _is_too_large(self, *, ended: bool = False) -> bool:
        places = (self._places.workspace, self._places.home, self._places.temporary)
        limit = self._max_mb * MEGABYTE
        return used_bytes(places, limit, accessible=ended) > limit
