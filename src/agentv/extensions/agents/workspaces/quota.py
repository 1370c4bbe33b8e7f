"""The disk space that a trial may take, watched while its agent works."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from agentv.extensions.agents.workspaces.files.measuring import MEGABYTE, used_bytes
from agentv.extensions.agents.workspaces.sandboxes.places import Places
from agentv.model.values.response import Failure

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
