"""Runs are named and deleted."""

from __future__ import annotations

from msgspec import Struct

from agentv.app.view.opened import OpenRuns
from agentv.errors import UsageError
from agentv.reports.text.escaping import safe
from agentv.store.files.directory import RUN, RunDirectory, is_being_written
from agentv.store.index.deletion import check_removable, remove_run

LONGEST_NAME = 200
"""Characters of a run's name."""


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


def name_run(opened: OpenRuns, run_id: str, name: str) -> NamedRun:
    """Give a run a name, which its `run.json` keeps.

    Raises:
        NoSuchRunError: there is none.
        UsageError: it is too long, has control characters, or the run is being written.
        StoreError: the file cannot be written.
    """
    path = opened.project.run(run_id)
    given = " ".join(name.split())
    if len(given) > LONGEST_NAME:
        raise UsageError(f"a name may have {LONGEST_NAME} characters at most")
    if safe(given) != given:
        raise UsageError("a name may have no control characters")
    if is_being_written(path):
        raise UsageError("the run is still being written", "wait until it ends")
    with RunDirectory.open(path) as directory:
        directory.write(RUN, {"name": given})
    return NamedRun(run_id, given)


def delete_run(opened: OpenRuns, run_id: str) -> DeletedRun:
    """Delete a run.

    Raises:
        NoSuchRunError: there is none.
        UsageError: it is being written.
        StoreError: it is not what agentv wrote, or the system refuses.
    """
    path = opened.project.run(run_id)
    check_removable(path)
    if is_being_written(path):
        raise UsageError("the run is still being written", "wait until it ends, or stop it")
    opened.forget(path)
    return DeletedRun(run_id, list(remove_run(path)))
