"""Files of a project that change: what `--watch` looks at.

Looking is polling: it works on every file system, also on those of containers and networks, and finds what an editor
saves by renaming. Which cases a file changes is not decided here: the keys of their trials know.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from agentv.app.settings import EvalSettings
from agentv.authoring.source.files import repository_root
from agentv.errors import ExitStatus, UsageError
from agentv.model.values.formatting import plural
from agentv.reports.text import one_line, shown_from

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


class WatchedFiles(Struct, frozen=True):
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
        seen: set[str] = set()
        for path in (path for directory in self.directories for path in _below(directory, seen)):
            if path in self.without:
                continue
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
            began = self.clock()
            now, took_s = self.snapshot(), self.clock() - began
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


NAMED = 3
"""Changed files that are named."""

_ONCE = ("--last-failed", "--lf")
"""Options of the first run alone; the others resume it."""

_OTHER_RUNS = ("resume", "rerun", "regrade", "record", "against")

Runner = Callable[[Sequence[str]], int]


def follow(words: Sequence[str], files: WatchedFiles, run: Runner, here: str) -> int:
    """Run a command, and run it again after every save, until Ctrl-C; the exit status.

    Args:
        words: of the command line, after `agentv`, without `--watch`.
        files: that are watched.
        run: runs `agentv` with these words; its exit status.
        here: absolute path of the working directory.
    """
    with tempfile.TemporaryDirectory(prefix="agentv-watch-") as directory:
        try:
            note = Path(directory, "run")
            paths: list[str] = []
            before = files.snapshot()
            while run(_next_command(words, note)) != ExitStatus.INTERRUPTED:
                after = files.snapshot()
                written = differing(before, after)
                if written and set(written) <= set(paths):
                    before = after  # the run itself writes these files, such as a log of its output
                click.echo("\nwatching for changes; Ctrl-C ends", err=True)
                paths, before = files.changed(before)
                named = ", ".join(one_line(shown_from(path, here)) for path in paths[:NAMED])
                more = f" and {plural(len(paths) - NAMED, 'more file')}" if len(paths) > NAMED else ""
                click.echo(f"\nchanged: {named}{more}", err=True)
        except KeyboardInterrupt:
            click.echo("\nstopped watching", err=True)
    return ExitStatus.INTERRUPTED


def _next_command(words: Sequence[str], note: Path) -> list[str]:
    """The first run is new, and the others resume it."""
    run = note.read_text(encoding="utf-8") if note.exists() else ""
    goes_on = [f"--resume={run}"] if run and Path(run).is_dir() else []
    return [*(word for word in words if not (goes_on and word in _ONCE)), "--watched", str(note), *goes_on]


def watch(paths: tuple[str, ...], options: dict[str, Any], exports: tuple[str, ...]) -> int:
    """Run eval files, and after every save again what it changes.

    Raises:
        UsageError: an option names another run, prints for programs, or contradicts another one.
        StoreError: there is no such cassette.
    """
    for name in _OTHER_RUNS:
        if options.get(name) is not None:
            raise UsageError(f"--watch conflicts with --{name}", "use one of them")
    if options.get("lists") or options.get("as_json") or options.get("format_name") not in (None, "text"):
        raise UsageError("--watch prints text for people", "omit --list, --json and --format")
    # saving a file cannot mend these: every run would end with the same mistake of the command line
    EvalSettings(**{name: options[name] for name in EvalSettings.__struct_fields__ if name in options}).check()
    cassette = options.get("replay")
    if cassette is not None and options.get("replay_mode") != "new":
        from agentv.store.cassettes.cassette import check_exists

        check_exists(Path(cassette))
    here = str(Path.cwd())
    root = repository_root(here)
    named = (str(path if path.is_dir() else path.parent) for path in (Path(path).absolute() for path in paths))
    outside = [one for one in dict.fromkeys(named) if not f"{one}/".startswith(f"{root.rstrip('/')}/")]
    files = WatchedFiles(
        (root, *outside), frozenset(map(os.path.abspath, exports)), time.sleep, time.monotonic, outputs()
    )
    given = ["prompt"] if Path(sys.argv[0]).name == "eva" else []
    words = (*given, *(word for word in sys.argv[1:] if word != "--watch"))
    return follow(words, files, run_agentv, here)


def run_agentv(words: Sequence[str]) -> int:
    """Run agentv in a process group of its own, which gets every Ctrl-C once; its exit status."""
    # -P: a file of the project that is called agentv.py is not what runs
    command = [sys.executable, "-P", "-m", "agentv", *words]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
