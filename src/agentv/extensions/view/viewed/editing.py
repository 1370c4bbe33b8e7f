"""Runs whose files are the truth are named and deleted."""

from __future__ import annotations

from agentv.app.results.editing import DeletedRun, NamedRun, checked_name
from agentv.errors import UsageError
from agentv.extensions.view.viewed.opened import OpenRuns
from agentv.store.files.directory import RUN, RunDirectory, is_being_written
from agentv.store.index.deletion import check_removable, remove_run


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
