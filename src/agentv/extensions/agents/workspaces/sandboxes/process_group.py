"""Sandbox `none`: nothing is hidden, but everything that a program starts ends with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentv.extensions.agents.workspaces.environment import FOR_GRADERS, MARK, allowed, without_directories
from agentv.extensions.agents.workspaces.sandboxes.ending import end_processes
from agentv.extensions.agents.workspaces.sandboxes.launcher import command_line
from agentv.extensions.agents.workspaces.sandboxes.places import Places
from agentv.model.suite.workspace import Network, SandboxName
from agentv.user_code.processes.orphans import MARK as STARTED_BY


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Programs of one trial behind a guard that ends them (`launcher.py`), with the environment of an agent.

    Attributes:
        env: variables that are set for every program: of the suite and the variant.
        file_limit: bytes that one file may have.
        grading: for the commands of graders, which find nothing on PATH that an agent could have planted.
    """

    places: Places
    env: Mapping[str, str]
    file_limit: int = 0
    grading: bool = False

    @property
    def name(self) -> SandboxName:
        """Nothing is hidden from the program."""
        return "none"

    @property
    def home(self) -> str:
        """HOME of the program."""
        return self.places.home

    @property
    def temporary(self) -> str:
        """TMPDIR of the program."""
        return self.places.temporary

    @property
    def network(self) -> Network:
        """That of the host."""
        return "host"

    def forwarding(self, forwards: Mapping[int, str]) -> ProcessGroup:
        """Itself: its programs are on the host's own network."""
        del forwards
        return self

    def argv(self, argv: Sequence[str], cwd: str = "") -> tuple[str, ...]:
        """The command line that runs a program behind its guard, in the workspace or in `cwd`."""
        inside = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', cwd or self.places.workspace, *argv)
        return command_line(inside, hidden_variable=STARTED_BY, file_limit=self.file_limit)

    def environment(self, env: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
        """The complete environment: what is allowed, what the suite sets, and what marks the trial."""
        graders = FOR_GRADERS if self.grading else {}
        found = {**allowed(os.environ, named), **graders, **self.env, **env}
        if self.grading:
            found["PATH"] = without_directories(found["PATH"], (self.places.trial, self.places.workspace))
        return {**found, "HOME": self.home, "TMPDIR": self.temporary, MARK: self.places.trial}

    def for_grading(self, places: Places, env: Mapping[str, str]) -> ProcessGroup:
        """The same sandbox for the commands of graders."""
        return replace(self, places=places, env=env, grading=True)

    def end(self, grace_s: float) -> bool:
        """End all processes of the trial; whether nothing is left. It blocks."""
        return end_processes(self.places.trial, grace_s)
