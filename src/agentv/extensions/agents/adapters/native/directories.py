"""Directories and settings files of an agent: written before it starts, for this trial alone."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from agentv.extensions.agents.adapters.native.stream import Directories
from agentv.extensions.agents.adapters.process import STREAM_LIMIT
from agentv.model.values.response import Failure
from agentv.ports import TargetRequest
from agentv.user_code.files import temporary_prefix

_HIDDEN_DIRECTORY = ".agentv-agent-"
_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700


class TrialDirectories:
    """The directories of one trial's agent. Temporary ones are removed by `remove`.

    Args:
        request: the first of the trial.
        host_home: without a workspace, HOME is that of the user.
    """

    def __init__(self, request: TargetRequest, *, host_home: bool = False) -> None:
        self._made: list[TemporaryDirectory[str]] = []
        workspace = request.workspace_path or self._temporary()
        home = request.sandbox.home if request.sandbox is not None and request.sandbox.home else ""
        of_user = os.path.expanduser("~")  # noqa: PTH111  # None is no error here
        home = home or (of_user if host_home else self._temporary())
        own = os.path.realpath(home) != os.path.realpath(of_user)
        config = home if own else self._temporary(home)
        self.paths = Directories(workspace, home, config)

    def _temporary(self, within: str | None = None) -> str:
        made = TemporaryDirectory(prefix=_HIDDEN_DIRECTORY if within else temporary_prefix(), dir=within)
        self._made.append(made)
        return made.name

    def write(self, files: Mapping[str, str]) -> Failure | None:
        """Write settings files, readable by the user alone; why that is impossible."""
        try:
            for name, text in files.items():
                path = self._place(name)
                path.unlink(missing_ok=True)
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(text.encode(errors="surrogateescape"))
        except (OSError, ValueError) as error:
            return Failure("cannot-start", f"the agent's settings cannot be written: {error}")
        return None

    def discard(self, name: str) -> Failure | None:
        """Remove a file that the agent will write; why that is impossible."""
        try:
            if name and "*" not in name:
                self._place(name).unlink(missing_ok=True)
        except (OSError, ValueError) as error:
            return Failure("cannot-start", f"the agent's earlier report cannot be removed: {error}")
        return None

    def read(self, name: str) -> bytes:
        """What the agent wrote to a file; empty if it is missing. A link is not followed: it may lead anywhere."""
        try:
            if "*" in name:
                found = Path(self.paths.config).glob(name)
                name = max(found, key=lambda one: one.lstat().st_mtime, default=Path(name)).as_posix()
            descriptor = os.open(self._place(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return b""
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return b""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(STREAM_LIMIT)

    def copy_skills(self, skills: Iterable[str], place: str) -> Failure | None:
        """Copy directories of skills to where the agent reads them; why that is impossible."""
        try:
            for one in skills:
                name = Path(one).name
                shutil.copytree(one, self._place(f"{place}/{name}"), dirs_exist_ok=True)
        except (OSError, ValueError) as error:
            return Failure("cannot-start", f"the skills cannot be copied: {error}")
        return None

    def _place(self, name: str) -> Path:
        """The path of a file below the configuration, whose directories are made.

        Raises:
            OSError: they cannot be made, or an agent has put a link in their place.
        """
        path = Path(self.paths.config, name)
        path.parent.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        root = os.path.realpath(self.paths.config)
        if os.path.commonpath([root, os.path.realpath(path.parent)]) != root:
            raise OSError(f"{name} lies outside of the agent's configuration")
        return path

    def remove(self) -> None:
        """Remove the temporary ones."""
        for one in self._made:
            one.cleanup()
