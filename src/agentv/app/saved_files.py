"""Files of a project that change: what `--watch` looks at.

Looking is polling: it works on every file system, also on those of containers and networks, and finds what an editor
saves by renaming. Which cases a file changes is not decided here: the keys of their trials know.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

MOST_FILES = 50_000
"""Files that are looked at."""

POLL_S = 0.4
"""Seconds between two looks, at least."""

SETTLED_S = 0.15
"""Seconds without a change after which a save is over."""

_BUSY = 10
"""How many times as long as a look takes the pause after it is."""

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_OWN = frozenset({"results", "cache", "exams", "workspaces"})
"""Directories of `.agentv` that runs write to."""

_ENDINGS = ("~", ".swp", ".swx", ".swo", ".tmp", ".pyc", ".lock")

Snapshot = Mapping[str, tuple[int, int, int]]
"""Path → time of change, size, inode."""


@dataclass(frozen=True, slots=True)
class WatchedFiles:
    """The files below some directories, without those that runs and editors write.

    Attributes:
        directories: absolute paths.
        without: absolute paths of files that the run writes.
        sleep, clock: in seconds.
        outputs: devices and inodes of the files that the output of the run goes to.
    """

    directories: tuple[str, ...]
    without: frozenset[str]
    sleep: Callable[[float], None]
    clock: Callable[[], float]
    outputs: frozenset[tuple[int, int]] = frozenset()

    def snapshot(self) -> Snapshot:
        """How the files are now."""
        found: dict[str, tuple[int, int, int]] = {}
        for path in self._paths():
            with suppress(OSError):  # it was removed meanwhile
                state = os.stat(path)  # noqa: PTH116  # for thousands of files
                if (state.st_dev, state.st_ino) not in self.outputs:
                    found[path] = (state.st_mtime_ns, state.st_size, state.st_ino)
            if len(found) >= MOST_FILES:
                break
        return found

    def changed(self, before: Snapshot) -> tuple[list[str], Snapshot]:
        """Wait until files differ from a snapshot and no more of them change; their paths, and how they are then."""
        while True:
            now, took_s = self._timed()
            paths = differing(before, now)
            if not paths:
                self.sleep(max(POLL_S, _BUSY * took_s))
                continue
            while True:
                self.sleep(SETTLED_S)
                after = self.snapshot()
                if after == now:
                    break
                now = after
            if paths := differing(before, now):  # a file that was replaced and restored has not changed
                return paths, now

    def _timed(self) -> tuple[Snapshot, float]:
        began = self.clock()
        return self.snapshot(), self.clock() - began

    def _paths(self) -> Iterator[str]:
        seen: set[str] = set()
        for directory in self.directories:
            for path in _below(directory, seen):
                if path not in self.without:
                    yield path


def outputs(descriptors: Iterable[int] = (1, 2)) -> frozenset[tuple[int, int]]:
    """Devices and inodes of the files that are open as stdout and stderr."""
    found = set()
    for descriptor in descriptors:
        with suppress(OSError):  # it is closed
            state = os.fstat(descriptor)
            found.add((state.st_dev, state.st_ino))
    return frozenset(found)


def differing(before: Snapshot, after: Snapshot) -> list[str]:
    """Paths of files that are new, gone, or changed."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _below(directory: str, seen: set[str]) -> Iterator[str]:
    if directory in seen:
        return
    seen.add(directory)
    try:
        entries: Iterable[os.DirEntry[str]] = sorted(os.scandir(directory), key=lambda one: one.name)
    except OSError:
        return
    for entry in entries:
        with suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                if _is_looked_into(entry.name, directory):
                    yield from _below(entry.path, seen)
            elif _is_looked_at(entry.name):
                yield entry.path


def _is_looked_into(name: str, parent: str) -> bool:
    if os.path.basename(parent) == ".agentv":  # noqa: PTH119  # text, as all paths are
        return name not in _OWN
    return name == ".agentv" or (name not in _SKIPPED and not name.startswith("."))


def _is_looked_at(name: str) -> bool:
    if name.startswith("."):
        return name.startswith(".env") and not name.endswith(_ENDINGS)
    return not name.endswith(_ENDINGS) and not name.startswith("#") and name != "4913"  # vim tries whether it can write
