"""The runs of a project that `agentv view` shows, by their ids: looked up, named and deleted."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from agentv.app.results.place import RESULTS, place_holding, runs_in
from agentv.app.results.stored import find_run
from agentv.errors import AgentvError, StoreError, UsageError
from agentv.model.run.runs import LONGEST_NAME
from agentv.reports.text import safe
from agentv.store.files.directory import HISTORY, INDEX, JOURNAL, RUN, SUMMARY, results_directory

_OPENED = (RUN, INDEX, JOURNAL, SUMMARY, HISTORY)


class NoSuchRunError(AgentvError):
    """A run that is not there, or not any more."""

    answered = (404, "no-such-run")


class Project(Struct, frozen=True):
    """The directories whose runs are shown.

    Attributes:
        root: of the project.
        named: absolute paths of runs that the user named; empty: all of the results directory.
    """

    root: Path
    named: tuple[Path, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[str]) -> Project:
        """The project of the working directory, and the runs that the user names: ids, directories, or `last`.

        Raises:
            UsageError: there is no such run.
        """
        root = place_holding(RESULTS)
        return cls(root, tuple(dict.fromkeys(find_run(name, root, action="view").absolute() for name in runs)))

    @property
    def name(self) -> str:
        """Name of the project's directory."""
        return self.root.absolute().name

    def runs(self) -> dict[str, Path]:
        """Directory of each run by its id, newest first. A link in the results directory is no run of it."""
        found = self.named
        if not found:
            results = results_directory(self.root)
            try:
                listed = runs_in(results, damaged=True)
            except OSError:  # one was deleted at this moment
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
        """The directory of a run, found by listing: nothing that a request says becomes part of a path.

        Raises:
            NoSuchRunError: no run has this id.
        """
        found = self.runs().get(run_id)
        if found is None or not found.is_dir():
            raise NoSuchRunError("this project has no such run; it may have been deleted")
        return found


def check_files(run: Path) -> None:
    """Refuse a run one of whose files is a link, or no file at all: it could lead anywhere, or never end.

    Raises:
        StoreError: the text names it.
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
    """Sizes and times of the files of a run: as long as it stays, so does what they say."""
    stamps = []
    for name in _OPENED:
        try:
            found = os.lstat(run / name)
            stamps.append(f"{found.st_ino:x}:{found.st_size:x}:{found.st_mtime_ns:x}")
        except OSError:
            stamps.append("-")
    return " ".join(stamps)


class DeletedRun(Struct, frozen=True):
    """A run that is gone.

    Attributes:
        left: files in its directory that are no part of the run, so that the directory stays.
    """

    run_id: str
    left: list[str]


class NamedRun(Struct, frozen=True):
    """A run and its name; empty: none."""

    run_id: str
    name: str


class RunEditor(Protocol):
    """Names and deletes the runs of a project."""

    def name(self, run_id: str, name: str, person: str) -> NamedRun:
        """Give a run a name.

        Raises:
            NoSuchRunError: no run has this id.
            UsageError: it cannot have the name, or not now.
        """
        ...

    def delete(self, run_id: str, person: str) -> DeletedRun:
        """Delete a run.

        Raises:
            NoSuchRunError: no run has this id.
            UsageError: it is being written.
        """
        ...


def checked_name(name: str) -> str:
    """A name on one line.

    Raises:
        UsageError: it is too long, or has control characters.
    """
    given = " ".join(name.split())
    if len(given) > LONGEST_NAME:
        raise UsageError(f"a name may have {LONGEST_NAME} characters at most")
    if safe(given) != given:
        raise UsageError("a name may have no control characters")
    return given
