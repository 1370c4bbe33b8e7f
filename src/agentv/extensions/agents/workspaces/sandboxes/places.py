"""Directories of one confined program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Places:
    """Absolute paths that a confined program may write to, and what its environment says of them.

    Attributes:
        trial: the directory of the trial, whose name marks all its processes.
        workspace: the working directory.
        home: HOME.
        temporary: TMPDIR.
        host_home: HOME is the user's own.
    """

    trial: str
    workspace: str
    home: str
    temporary: str
    host_home: bool = False
