"""Directories of a run: made with its process in their name, watched for their size, removed when it is dead."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from agentv.extensions.agents.workspaces.files.placing import make_writable, remove_directory
from agentv.extensions.agents.workspaces.sandboxes.docker import remove_containers_of_run
from agentv.extensions.agents.workspaces.sandboxes.process_group import Places, end_processes
from agentv.model.values.response import Failure
from agentv.user_code.processes.leftovers import is_alive, temporary_prefix

_KIND = "workspaces-"


class RunDirectory:
    """The directory of all workspaces of one run. It is made at once, and only its owner may enter it.

    Args:
        place: where it is made.
    """

    def __init__(self, place: str) -> None:
        self.path = Path(os.path.realpath(mkdtemp(prefix=temporary_prefix() + _KIND, dir=place)))
        self._prepared, self._trials = count(1), count(1)

    @property
    def baselines(self) -> Path:
        """Where the git repository of the baselines lies."""
        return self.path / "baselines.git"

    def prepared(self) -> Places:
        """New directories for a workspace that is prepared once. Their paths are as long as those of a trial."""
        return _made(self.path / "setups" / _numbered(next(self._prepared)))

    def trial(self) -> Places:
        """New directories for a trial."""
        return _made(self.path / "trials" / _numbered(next(self._trials)))

    def remove(self) -> bool:
        """Remove all of it; whether it is gone. It blocks."""
        return remove_directory(str(self.path))


def grading(places: Places) -> Places:
    """A new HOME and a new temporary directory for a grader's command, beside the workspace. It blocks."""
    top = Path(mkdtemp(prefix="grader-", dir=places.trial))
    for name in ("home", "tmp"):
        (top / name).mkdir()
    return Places(places.trial, places.workspace, str(top / "home"), str(top / "tmp"))


def _numbered(number: int) -> str:
    return f"{number:06}"


def _made(top: Path) -> Places:
    for name in ("workspace", "home", "tmp"):
        (top / name).mkdir(parents=True)
    return Places(str(top), str(top / "workspace"), str(top / "home"), str(top / "tmp"))


def sweep(place: str) -> None:
    """End the processes and remove the directories of runs whose process is dead, and of no others. It blocks."""
    namespace = temporary_prefix().rstrip("-").rpartition("-")[2]
    left = re.compile(rf"agentv-(\d+)-{namespace}-{_KIND}.+")
    try:
        names = os.listdir(place)  # noqa: PTH208  # names alone
    except OSError:
        return
    for name in names:
        found = left.fullmatch(name)
        path = os.path.realpath(Path(place) / name)
        if found is None or is_alive(int(found[1])) or (Path(place) / name).is_symlink() or not _is_ours(path):
            continue
        end_processes(path, grace_s=0.0)
        remove_containers_of_run("docker", path)
        remove_directory(path)


def _is_ours(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return False


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
