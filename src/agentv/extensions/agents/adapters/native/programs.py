"""Programs of agents: where they are installed, and how to install them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from agentv.registry.extras import install_hint
from agentv.registry.fields import Issue


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """The program of an agent.

    Attributes:
        name: on PATH.
        module: Python package that contains the program; empty: none does.
        path: of the program inside that package.
        extra: extra of this package that brings the module.
        npm: npm package that brings it.
        pip: Python package that brings it as a command.
        version_argv: arguments that make it print its version; empty: its stream tells it.
        tested: versions whose stream is known; with another one the row has a note.
    """

    name: str
    module: str = ""
    path: str = ""
    extra: str = ""
    npm: str = ""
    pip: str = ""
    version_argv: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()

    def find(self) -> str:
        """The program: of the package, else the one on PATH; its name where neither is there."""
        return self._bundled() or shutil.which(self.name) or self.name

    def missing(self, title: str) -> Issue | None:
        """An Issue with how to install it, if it is nowhere."""
        if self._bundled() or shutil.which(self.name):
            return None
        message = f"{title} is not installed: no program '{self.name}' on PATH"
        ways = [
            *((install_hint(self.extra),) if self.extra else ()),
            *((f"npm install -g {self.npm}",) if self.npm else ()),
            *((f"pip install {self.pip}",) if self.pip else ()),
            "set 'command'",
        ]
        return Issue((), message, "missing-agent", ", or ".join(ways), of_machine=True)

    def untested(self, version: str) -> bool:
        """Whether a version is known to be none of the tested ones; minor and patch versions count as one."""
        return bool(version and self.tested) and _series(version) not in map(_series, self.tested)

    def _bundled(self) -> str:
        if not self.module:
            return ""
        try:
            found = find_spec(self.module)
        except (ValueError, ImportError):
            return ""
        for directory in (found and found.submodule_search_locations) or ():
            program = Path(directory, self.path)
            if program.is_file() and os.access(program, os.X_OK):
                return str(program)
        return ""


def _series(version: str) -> str:
    return ".".join(version.split(".")[:2])


UNTESTED = "untested_version"
"""Key of a trace's metadata: the agent's version is not one whose stream is known."""


def version_note(program: AgentProgram, version: str) -> Mapping[str, str]:
    """What a trace says of a version that was never seen; nothing of one that was."""
    if not program.untested(version):
        return {}
    return {UNTESTED: f"{program.name} {version}; tested with {', '.join(program.tested)}"}
