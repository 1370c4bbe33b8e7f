"""`agentv eval --watch`: run again whenever a file of the project changes.

Files are polled, which works on every file system, including those of containers and networks, and detects editors that
save by renaming. The keys of trials decide which cases a change affects, not this module.
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
from agentv.cli.values import with_options
from agentv.errors import ExitStatus, UsageError
from agentv.model.values.formatting import plural
from agentv.reports.text import one_line, shown_from

MOST_FILES = 50_000
"""Maximum number of watched files."""

POLL_S = 0.4
"""Minimum number of seconds between two snapshots."""

SETTLED_S = 0.15
"""Seconds without a change after which a save is considered complete."""

_PAUSE_FACTOR = 10
"""Minimum pause after a snapshot, as a multiple of the time that it took."""

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_WRITTEN_BY_RUNS = frozenset({"results", "cache", "exams", "workspaces"})
"""Directories of `.agentv` that runs write to."""

_ENDINGS = ("~", ".swp", ".swx", ".swo", ".tmp", ".pyc", ".lock")

Snapshot = Mapping[str, tuple[int, int, int]]
"""Path → modification time in ns, size, inode."""


class WatchedFiles(Struct, frozen=True):
    """The files below some directories, except those that runs and editors write.

    Attributes:
        directories: absolute paths.
        excluded: absolute paths of files that the run writes.
        sleep, clock: functions in seconds, which tests replace.
        outputs: devices and inodes of the files to which the run's output is redirected.
    """

    directories: tuple[str, ...]
    excluded: frozenset[str]
    sleep: Callable[[float], None]
    clock: Callable[[], float]
    outputs: frozenset[tuple[int, int]] = frozenset()

    def snapshot(self) -> Snapshot:
        """Return the current state of the files."""
        found: dict[str, tuple[int, int, int]] = {}
        seen: set[str] = set()
        for path in (path for directory in self.directories for path in _files_below(directory, seen)):
            if path in self.excluded:
                continue
            with suppress(OSError):  # the file was removed meanwhile
                state = os.stat(path)  # noqa: PTH116  # for thousands of files
                if (state.st_dev, state.st_ino) not in self.outputs:
                    found[path] = (state.st_mtime_ns, state.st_size, state.st_ino)
            if len(found) >= MOST_FILES:
                break
        return found

    def changed(self, before: Snapshot) -> tuple[list[str], Snapshot]:
        """Wait until files differ from a snapshot and stop changing; return their paths and a new snapshot."""
        while True:
            began = self.clock()
            now, took_s = self.snapshot(), self.clock() - began
            paths = differing(before, now)
            if not paths:
                self.sleep(max(POLL_S, _PAUSE_FACTOR * took_s))
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
    """Return the devices and inodes of the files that are open as stdout and stderr."""
    found = set()
    for descriptor in descriptors:
        with suppress(OSError):  # the descriptor is closed
            state = os.fstat(descriptor)
            found.add((state.st_dev, state.st_ino))
    return frozenset(found)


def differing(before: Snapshot, after: Snapshot) -> list[str]:
    """Return the paths of files that were added, removed or changed."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _files_below(directory: str, seen: set[str]) -> Iterator[str]:
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
                if _is_watched_directory(entry.name, directory):
                    yield from _files_below(entry.path, seen)
            elif _is_watched_file(entry.name):
                yield entry.path


def _is_watched_directory(name: str, parent: str) -> bool:
    if os.path.basename(parent) == ".agentv":  # noqa: PTH119  # paths are strings
        return name not in _WRITTEN_BY_RUNS
    return name == ".agentv" or (name not in _SKIPPED and not name.startswith("."))


def _is_watched_file(name: str) -> bool:
    if name.startswith("."):
        return name.startswith(".env") and not name.endswith(_ENDINGS)
    return not name.endswith(_ENDINGS) and not name.startswith("#") and name != "4913"  # vim tests write access with it


PATHS_SHOWN = 3
"""Maximum number of changed files that are named."""

_FIRST_RUN_OPTIONS = ("--last-failed", "--lf")
"""Options for the first run only; later runs resume it."""

_OTHER_RUNS = ("resume", "rerun", "regrade", "record", "against")

Runner = Callable[[Sequence[str]], int]


def run_repeatedly(words: Sequence[str], files: WatchedFiles, run: Runner, here: str) -> int:
    """Run a command, run it again after every save until Ctrl-C, and return the exit status.

    Args:
        words: arguments of `agentv`, without `--watch`.
        files: the files to watch.
        run: runs `agentv` with arguments and returns the exit status.
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
                    before = after  # the run itself writes these files, such as a log
                click.echo("\nwatching for changes; Ctrl-C ends", err=True)
                paths, before = files.changed(before)
                named = ", ".join(one_line(shown_from(path, here)) for path in paths[:PATHS_SHOWN])
                more = f" and {plural(len(paths) - PATHS_SHOWN, 'more file')}" if len(paths) > PATHS_SHOWN else ""
                click.echo(f"\nchanged: {named}{more}", err=True)
        except KeyboardInterrupt:
            click.echo("\nstopped watching", err=True)
    return ExitStatus.INTERRUPTED


def _next_command(words: Sequence[str], note: Path) -> list[str]:
    """Return the arguments of the next run: the first run is new, later ones resume it."""
    run = note.read_text(encoding="utf-8") if note.exists() else ""
    resume = [f"--resume={run}"] if run and Path(run).is_dir() else []
    again = [word for word in words if not (resume and word in _FIRST_RUN_OPTIONS)]
    return with_options(again, ["--watched", str(note), *resume])


def watch(paths: tuple[str, ...], options: dict[str, Any], exports: tuple[str, ...]) -> int:
    """Run eval files, and after every save run the affected cases again.

    Raises:
        UsageError: an option names another run, selects output for programs, or conflicts with another option.
        StoreError: the cassette does not exist.
    """
    for name in _OTHER_RUNS:
        if options.get(name) is not None:
            raise UsageError(f"--watch conflicts with --{name}", "use one of them")
    if options.get("lists") or options.get("as_json") or options.get("format_name") not in (None, "text"):
        raise UsageError("--watch prints text for people", "omit --list, --json and --format")
    # checked here because saving a file cannot fix a mistake of the command line: every run would fail
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
    return run_repeatedly(words, files, run_agentv, here)


def run_agentv(words: Sequence[str]) -> int:
    """Run agentv in a process group of its own, so that it gets each Ctrl-C once, and return its exit status."""
    # -P, so that a file agentv.py in the project is not imported instead
    command = [sys.executable, "-P", "-m", "agentv", *words]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
