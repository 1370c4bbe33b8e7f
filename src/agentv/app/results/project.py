"""The runs of a project that `agentv view` shows: look up, name and delete them by id."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from agentv.app.results.place import RESULTS, project_with, runs_in
from agentv.app.results.stored import find_run
from agentv.errors import AgentvError, StoreError, UsageError
from agentv.model.run.runs import LONGEST_NAME
from agentv.reports.text import safe
from agentv.store.files.directory import HISTORY, INDEX, JOURNAL, RUN, SUMMARY, results_directory

_OPENED = (RUN, INDEX, JOURNAL, SUMMARY, HISTORY)


class NoSuchRunError(AgentvError):
    """A run does not exist, or was deleted."""

    http_error = (404, "no-such-run")


class Project(Struct, frozen=True):
    """A project whose runs are shown.

    Attributes:
        root: directory of the project.
        named: absolute paths of runs that the user named; empty: all runs in the results directory.
    """

    root: Path
    named: tuple[Path, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[str]) -> Project:
        """Return the project of the working directory, with the runs named by ids, directories, or `last`.

        Raises:
            UsageError: there is no such run.
        """
        root = project_with(RESULTS)
        return cls(root, tuple(dict.fromkeys(find_run(name, root, action="view").absolute() for name in runs)))

    @property
    def name(self) -> str:
        """Name of the project's directory."""
        return self.root.absolute().name

    def runs(self) -> dict[str, Path]:
        """Return run id → directory, newest first. Links in the results directory are ignored."""
        found = self.named
        if not found:
            results = results_directory(self.root)
            try:
                listed = runs_in(results, damaged=True)
            except OSError:  # a run was deleted concurrently
                listed = runs_in(results, damaged=True)
            found = tuple(path for path in reversed(listed) if not path.is_symlink())
        runs: dict[str, Path] = {}
        for path in found:
            name, copy = path.name, 2
            while name in runs:
                name, copy = f"{path.name}~{copy}", copy + 1
            runs[name] = path.absolute()
        return runs

    def run(self, run_id: str) -> Path:
        """Return the directory of a run. It is looked up in the listing, so that no request becomes part of a path.

        Raises:
            NoSuchRunError: no run has this id.
        """
        found = self.runs().get(run_id)
        if found is None or not found.is_dir():
            raise NoSuchRunError("this project has no such run; it may have been deleted")
        return found


def check_files(run: Path) -> None:
    """Raise if a file of a run is a link or not a regular file, as it could lead outside or never end.

    Raises:
        StoreError: with the path of the file.
    """
    for name in _OPENED:
        try:
            mode = os.lstat(run / name).st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(f"cannot read {run / name}: {error.strerror}") from error
        if not stat.S_ISREG(mode):
            raise StoreError(f"cannot read {run / name}: it is not a regular file")


def stamp_of(run: Path) -> str:
    """Return a stamp of the sizes and times of a run's files, which changes when their content does."""
    stamps = []
    for name in _OPENED:
        try:
            found = os.lstat(run / name)
            stamps.append(f"{found.st_ino:x}:{found.st_size:x}:{found.st_mtime_ns:x}")
        except OSError:
            stamps.append("-")
    return " ".join(stamps)


class DeletedRun(Struct, frozen=True):
    """A deleted run.

    Attributes:
        left: other files in its directory, which was therefore not removed.
    """

    run_id: str
    left: list[str]


class NamedRun(Struct, frozen=True):
    """A run and its name; "" for no name."""

    run_id: str
    name: str


class RunEditor(Protocol):
    """Names and deletes the runs of a project."""

    def name(self, run_id: str, name: str, person: str) -> NamedRun:
        """Give a run a name.

        Raises:
            NoSuchRunError: no run has this id.
            UsageError: the name is invalid, or the run cannot be named now.
        """
        ...

    def delete(self, run_id: str, person: str) -> DeletedRun:
        """Delete a run.

        Raises:
            NoSuchRunError: no run has this id.
            UsageError: the run is being written.
        """
        ...


def checked_name(name: str) -> str:
    """Return a name with whitespace collapsed.

    Raises:
        UsageError: the name is too long, or has control characters.
    """
    given = " ".join(name.split())
    if len(given) > LONGEST_NAME:
        raise UsageError(f"a name may have {LONGEST_NAME} characters at most")
    if safe(given) != given:
        raise UsageError("a name may have no control characters")
    return given
