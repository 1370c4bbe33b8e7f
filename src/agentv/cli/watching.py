"""`agentv eval --watch`: after every save, the cases that it changes run again.

Every run is a process of its own, so that it imports the code as it was saved. It resumes the one run of this command:
the keys of its trials tell which are complete, and those are neither run nor paid for again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from agentv.app.saved_files import WatchedFiles, differing, outputs
from agentv.app.settings import EvalSettings
from agentv.authoring.source.files import repository_root
from agentv.errors import ExitStatus, UsageError
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line, shown_from

NAMED = 3
"""Changed files that are named."""

_ONCE = ("--last-failed", "--lf")
"""Options of the first run alone; the others resume it."""

_OTHER_RUNS = ("resume", "rerun", "regrade", "record", "against")

Runner = Callable[[Sequence[str]], int]


@dataclass(frozen=True, slots=True)
class Watch:
    """A command that runs again after every save.

    Attributes:
        words: of the command line, after `agentv`, without `--watch`.
        files: that are watched.
        run: runs `agentv` with these words; its exit status.
        here: absolute path of the working directory.
    """

    words: tuple[str, ...]
    files: WatchedFiles
    run: Runner
    here: str

    def follow(self) -> int:
        """Run, and run again after every save, until Ctrl-C; the exit status."""
        with tempfile.TemporaryDirectory(prefix="agentv-watch-") as directory:
            try:
                return self._followed(Path(directory, "run"))
            except KeyboardInterrupt:
                click.echo("\nstopped watching", err=True)
                return ExitStatus.INTERRUPTED

    def _followed(self, note: Path) -> int:
        paths: list[str] = []
        before = self.files.snapshot()
        while self.run(self._command(note)) != ExitStatus.INTERRUPTED:
            after = self.files.snapshot()
            written = differing(before, after)
            if written and set(written) <= set(paths):
                before = after  # the run itself writes these files, such as a log of its output
            click.echo("\nwatching for changes; Ctrl-C ends", err=True)
            paths, before = self.files.changed(before)
            click.echo(f"\n{self._changed(paths)}", err=True)
        return ExitStatus.INTERRUPTED

    def _command(self, note: Path) -> list[str]:
        """The command for the next run: the first one is new, and the others resume it."""
        words = [*self.words, "--watched", str(note)]
        run = note.read_text(encoding="utf-8") if note.exists() else ""
        if not run or not Path(run).is_dir():
            return words
        return [*(word for word in words if word not in _ONCE), f"--resume={run}"]

    def _changed(self, paths: list[str]) -> str:
        named = ", ".join(one_line(shown_from(path, self.here)) for path in paths[:NAMED])
        more = f" and {plural(len(paths) - NAMED, 'more file')}" if len(paths) > NAMED else ""
        return f"changed: {named}{more}"


def watch(paths: tuple[str, ...], options: dict[str, object], exports: tuple[str, ...]) -> int:
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
    _check_command(options)
    here = str(Path.cwd())
    files = WatchedFiles(
        _directories(paths, here), frozenset(map(os.path.abspath, exports)), time.sleep, time.monotonic, outputs()
    )
    given = ["prompt"] if Path(sys.argv[0]).name == "eva" else []
    words = (*given, *(word for word in sys.argv[1:] if word != "--watch"))
    return Watch(words, files, run_agentv, here).follow()


def _check_command(options: dict[str, Any]) -> None:
    """Refuse what saving a file cannot mend: every run would end with the same mistake of the command line."""
    names = set(EvalSettings.__struct_fields__)
    EvalSettings(**{name: value for name, value in options.items() if name in names}).check()
    cassette = options.get("replay")
    if cassette is not None and options.get("replay_mode") != "new":
        from agentv.store.cassettes.cassette_file import check_exists

        check_exists(Path(cassette))


def _directories(paths: tuple[str, ...], here: str) -> tuple[str, ...]:
    """The repository, and the directories of eval files outside of it."""
    root = repository_root(here)
    given = (Path(path).absolute() for path in paths)
    found = [str(path if path.is_dir() else path.parent) for path in given]
    return (root, *(one for one in dict.fromkeys(found) if not f"{one}/".startswith(f"{root.rstrip('/')}/")))


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
