"""Directories of runs. Their names contain the process id, so that directories of dead runs can be removed."""

from __future__ import annotations

import os
import re
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

from agentv.extensions.agents.workspaces.docker import remove_containers_of_run
from agentv.extensions.agents.workspaces.placing import remove_directory
from agentv.extensions.agents.workspaces.process_group import Places, end_processes
from agentv.user_code.files import is_alive, temporary_prefix

_KIND = "workspaces-"


class RunDirectory:
    """The directory of all workspaces of one run. Created on construction, accessible to its owner only.

    Args:
        place: parent directory.
    """

    def __init__(self, place: str) -> None:
        self.path = Path(os.path.realpath(mkdtemp(prefix=temporary_prefix() + _KIND, dir=place)))
        self._numbers = count(1)

    @property
    def baselines(self) -> Path:
        """Path of the git repository of the baselines."""
        return self.path / "baselines.git"

    def places(self, kind: Literal["setups", "trials"]) -> Places:
        """Create directories for a prepared workspace or for a trial. The paths of both have the same length."""
        return _create_places(self.path / kind / f"{next(self._numbers):06}")

    def remove(self) -> bool:
        """Remove the directory; return whether it is gone. Blocks."""
        return remove_directory(str(self.path))


def grader_places(places: Places) -> Places:
    """Create a HOME and a temporary directory for a grader's command, beside the workspace. Blocks."""
    top = Path(mkdtemp(prefix="grader-", dir=places.trial))
    for name in ("home", "tmp"):
        (top / name).mkdir()
    return Places(places.trial, places.workspace, str(top / "home"), str(top / "tmp"))


def _create_places(top: Path) -> Places:
    for name in ("workspace", "home", "tmp"):
        (top / name).mkdir(parents=True)
    return Places(str(top), str(top / "workspace"), str(top / "home"), str(top / "tmp"))


def remove_dead_runs(place: str) -> None:
    """End the processes and remove the directories of dead runs. Blocks."""
    namespace = temporary_prefix().rstrip("-").rpartition("-")[2]
    left = re.compile(rf"agentv-(\d+)-{namespace}-{_KIND}.+")
    try:
        names = os.listdir(place)  # noqa: PTH208  # only names are needed
    except OSError:
        return
    for name in names:
        found = left.fullmatch(name)
        path = os.path.realpath(Path(place) / name)
        if found is None or is_alive(int(found[1])) or (Path(place) / name).is_symlink() or not _is_ours(path):
            continue
        end_processes(path, grace_s=0.0)
        remove_containers_of_run("docker", path)
        remove_directory(path)


def _is_ours(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return False
