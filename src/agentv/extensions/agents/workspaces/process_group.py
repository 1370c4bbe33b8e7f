"""Sandbox `none`: nothing is hidden, but everything that a program starts ends with it; what all sandboxes share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from agentv.extensions.agents.workspaces import launcher
from agentv.extensions.agents.workspaces.launcher import command_line
from agentv.model.suite.workspace import Network, SandboxName
from agentv.user_code.orphans import MARK as STARTED_BY

MARK = "AGENTV_WORKSPACE"
"""Variable of every program of a trial: the directory of the trial, by which its processes are found."""

_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
PROXIES = frozenset((*_PROXIES, *map(str.upper, _PROXIES)))
_ALLOWED = frozenset({"LANG", "LANGUAGE", "TERM", "TZ"}) | PROXIES
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

FOR_GRADERS: Mapping[str, str] = {
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    # over the configuration of a repository in the workspace, which the agent can write
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": os.devnull,
    "GIT_CONFIG_KEY_2": "core.pager",
    "GIT_CONFIG_VALUE_2": "cat",
}
"""What keeps graders from running code that an agent planted; a suite that needs it otherwise says so in `env`."""

SAFE_PATH: Mapping[str, str] = {"PYTHONSAFEPATH": "1"}
"""Keeps `python -m pytest` from loading a `pytest.py` of the workspace. Graders get it where an agent wrote a file with
the name of a module of Python's own or of a test runner: else `python -m unittest` finds the code that it tests."""


def allowed(host: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
    """The variables of this process that a confined program gets.

    Args:
        host: the environment of this process.
        named: further variables, which a target passes on by name.
    """
    chosen = {name for name in host if name in _ALLOWED or name.startswith("LC_")} | set(named)
    found = {name: host[name] for name in sorted(chosen) if name in host}
    return {"PATH": host.get("PATH") or _DEFAULT_PATH, **found}


def without_directories(path: str, excluded: Iterable[str]) -> str:
    """A PATH without relative entries, and without those below some directories, where an agent may have planted."""
    roots = tuple(os.path.realpath(one).rstrip(os.sep) + os.sep for one in excluded if one)
    absolute = [one for one in path.split(os.pathsep) if Path(one).is_absolute()]
    kept = [one for one in absolute if not f"{os.path.realpath(one)}{os.sep}".startswith(roots)]
    return os.pathsep.join(kept) or _DEFAULT_PATH


def end_processes(directory: str, grace_s: float = launcher.GRACE_S) -> bool:
    """End all processes of a trial; whether nothing is left. It blocks.

    Args:
        directory: of the trial, or of a run.
        grace_s: seconds between SIGTERM and SIGKILL.
    """
    return launcher.end_all(lambda: processes_of(directory), grace_s)


def processes_of(directory: str) -> set[int]:
    """The processes of a trial that have not ended: those that carry its mark, and all below them."""
    marks = tuple(f"\0{MARK}={directory}{end}".encode() for end in ("\0", os.sep))
    table = launcher.process_table()
    alive = {one for one, (_, state) in table.items() if state not in "ZX"} - {os.getpid()}
    roots = {one for one in alive if _carries(one, marks)}
    return (roots | launcher.alive_below(roots)) - {os.getpid()} if roots else set()


def _carries(process: int, marks: tuple[bytes, ...]) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123  # thousands of them
            environment = b"\0" + file.read()
            return any(mark in environment for mark in marks)
    except OSError:
        return False


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


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Programs of one trial behind a guard that ends them (`launcher.py`), with the environment of an agent.

    The other sandboxes are derived from it.

    Attributes:
        env: variables that are set for every program: of the suite and the variant.
        network: of its programs, which here is always the host's own.
        grading: for the commands of graders, which find nothing on PATH that an agent could have planted.
    """

    name: ClassVar[SandboxName] = "none"

    places: Places
    env: Mapping[str, str]
    network: Network = "host"
    grading: bool = False

    @property
    def home(self) -> str:
        """HOME of the program."""
        return self.places.home

    def forwarding(self, forwards: Mapping[int, str]) -> Self:  # noqa: ARG002  # of a network of its own
        """Itself: its programs are on the host's own network, or on none."""
        return self

    def argv(self, argv: Sequence[str], cwd: str = "") -> tuple[str, ...]:
        """The command line that runs a program behind its guard, in the workspace or in `cwd`."""
        inside = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', cwd or self.places.workspace, *argv)
        return command_line(inside, hidden_variable=STARTED_BY)

    def environment(self, env: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
        """The complete environment: what is allowed, what the suite sets, and what marks the trial."""
        graders = FOR_GRADERS if self.grading else {}
        found = {**allowed(os.environ, named), **graders, **self.env, **env}
        if self.grading:
            found["PATH"] = without_directories(found["PATH"], (self.places.trial, self.places.workspace))
        return {**found, "HOME": self.home, "TMPDIR": self.places.temporary, MARK: self.places.trial}

    def for_grading(self, places: Places, env: Mapping[str, str]) -> Self:
        """The same sandbox for the commands of graders."""
        return replace(self, places=places, env=env, grading=True)

    def end(self, grace_s: float) -> bool:
        """End all processes of the trial; whether nothing is left. It blocks."""
        return end_processes(self.places.trial, grace_s)
