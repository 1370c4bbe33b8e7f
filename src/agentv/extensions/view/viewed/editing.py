"""Runs are named and deleted."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from agentv.errors import UsageError
from agentv.extensions.view.viewed.opened import OpenRuns
from agentv.model.run.runs import LONGEST_NAME
from agentv.reports.text.escaping import safe
from agentv.store.files.directory import RUN, RunDirectory, is_being_written
from agentv.store.index.deletion import check_removable, remove_run


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
            NoSuchRunError: there is none.
            UsageError: it cannot have the name, or not now.
        """
        ...

    def delete(self, run_id: str, person: str) -> DeletedRun:
        """Delete a run.

        Raises:
            NoSuchRunError: there is none.
            UsageError: it is being written.
        """
        ...


class RunFiles:
    """Runs whose files are the truth."""

    def __init__(self, opened: OpenRuns) -> None:
        self._opened = opened

    def name(self, run_id: str, name: str, person: str) -> NamedRun:  # noqa: ARG002  # files keep nobody's name
        """See `RunEditor`; the run's `run.json` keeps the name.

        Raises:
            StoreError: the file cannot be written.
        """
        path = self._opened.project.run(run_id)
        given = checked_name(name)
        if is_being_written(path):
            raise UsageError("the run is still being written", "wait until it ends")
        with RunDirectory.open(path) as directory:
            directory.write(RUN, {"name": given})
        return NamedRun(run_id, given)

    def delete(self, run_id: str, person: str) -> DeletedRun:  # noqa: ARG002  # as above
        """See `RunEditor`.

        Raises:
            StoreError: it is not what agentv wrote, or the system refuses.
        """
        path = self._opened.project.run(run_id)
        check_removable(path)
        if is_being_written(path):
            raise UsageError("the run is still being written", "wait until it ends, or stop it")
        self._opened.forget(path)
        return DeletedRun(run_id, list(remove_run(path)))


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
