"""Settings of the workspaces of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from tempfile import gettempdir

from agentv.model.secrets.redaction import Redactor


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    """Where workspaces are made, and what agents do not see.

    Attributes:
        directory: where the workspaces of running trials lie; empty: the system's temporary directory.
        kept_directory: where those that are kept go; it is made when there is one.
        repositories: the cache of git repositories; empty: that of the user.
        private: absolute paths that no agent may see, besides home directories and what suites declare as hidden:
            the project, the runs.
        redactor: takes secrets out of workspaces that are kept.
    """

    directory: str = ""
    kept_directory: str = ""
    repositories: str = ""
    private: tuple[str, ...] = ()
    redactor: Redactor = field(default_factory=Redactor)

    @property
    def place(self) -> str:
        """The directory in which workspaces are made."""
        return self.directory or gettempdir()
