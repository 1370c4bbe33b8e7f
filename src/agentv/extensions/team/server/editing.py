"""Runs of a team's server are named and deleted in its database, which all servers copy from."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from agentv.app.results.editing import DeletedRun, NamedRun, checked_name
from agentv.app.results.project import NoSuchRunError
from agentv.errors import UsageError
from agentv.extensions.team.store.uploaded import RunName, UploadRefusedError, name_in
from agentv.extensions.team.store.uploads import Uploads
from agentv.store.files.directory import RUN, is_being_written

_WAIT_S = 2.0
"""Seconds to wait for this server's own copy, so that whoever changed something sees it at once."""

_LOOK_S = 0.02


class DatabaseRuns:
    """The runs of one project.

    Args:
        uploads: of the database.
        project: whose runs they are.
        copies: directory of this server's copies of them.
    """

    def __init__(self, uploads: Uploads, project: str, copies: Path) -> None:
        self._uploads = uploads
        self._project = project
        self._copies = copies

    def name(self, run_id: str, name: str, person: str) -> NamedRun:
        """See `RunEditor`. A later push replaces the name only where the run was given another one in its own files.

        Raises:
            DatabaseUnavailableError: the database cannot be reached.
        """
        given = checked_name(name)
        if not self._uploads.give_name(RunName(self._project, run_id, person, is_admin=True), given):
            raise NoSuchRunError("this project has no such run; it may have been deleted")
        _wait(lambda: self._has_name(run_id, given))
        return NamedRun(run_id, given)

    def delete(self, run_id: str, person: str) -> DeletedRun:
        """See `RunEditor`. Whoever has the run's files may push it again.

        Raises:
            DatabaseUnavailableError: the database cannot be reached.
        """
        name = RunName(self._project, run_id, person, is_admin=True)
        if (self._copies / run_id).is_dir() and is_being_written(self._copies / run_id):
            raise UsageError("the run is still being uploaded", "wait until it ends")
        if not self._uploads.delete(name):
            raise NoSuchRunError("this project has no such run; it may have been deleted")
        _wait(lambda: not (self._copies / run_id).exists())
        return DeletedRun(run_id, [])

    def _has_name(self, run_id: str, given: str) -> bool:
        try:
            return bool(name_in((self._copies / run_id / RUN).read_bytes()) == given)
        except (OSError, UploadRefusedError):
            return False  # it is not copied yet, or was deleted just now


def _wait(done: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_S
    while not done() and time.monotonic() < end:
        time.sleep(_LOOK_S)
