"""Sandbox `none`, the base of the other sandboxes: hides nothing, but ends everything that a program starts."""

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
"""Environment variable of a trial's programs with the trial's directory, by which its processes are found."""

_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
PROXIES = frozenset((*_PROXIES, *map(str.upper, _PROXIES)))
_ALLOWED = frozenset({"LANG", "LANGUAGE", "TERM", "TZ"}) | PROXIES
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

GRADER_VARIABLES: Mapping[str, str] = {
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    # overrides the configuration of a repository in the workspace, which the agent can write
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": os.devnull,
    "GIT_CONFIG_KEY_2": "core.pager",
    "GIT_CONFIG_VALUE_2": "cat",
}
"""Variables that keep graders from running code planted by an agent. A suite can override them in `env`."""

SAFE_PATH: Mapping[str, str] = {"PYTHONSAFEPATH": "1"}
"""Keeps `python -m pytest` from loading a `pytest.py` in the workspace. Graders get it only if an agent wrote a file
named like a module of Python or of a test runner, because `python -m unittest` needs the path to find the code."""


def allowed(host: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables of this process that a confined program gets.

    Args:
        host: the environment of this process.
        named: other variables, which a target passes on by name.
    """
    chosen = {name for name in host if name in _ALLOWED or name.startswith("LC_")} | set(named)
    found = {name: host[name] for name in sorted(chosen) if name in host}
    return {"PATH": host.get("PATH") or _DEFAULT_PATH, **found}


def without_directories(path: str, excluded: Iterable[str]) -> str:
    """Return a PATH without relative entries, and without those below directories that an agent may have written to."""
    roots = tuple(os.path.realpath(one).rstrip(os.sep) + os.sep for one in excluded if one)
    absolute = [one for one in path.split(os.pathsep) if Path(one).is_absolute()]
    kept = [one for one in absolute if not f"{os.path.realpath(one)}{os.sep}".startswith(roots)]
    return os.pathsep.join(kept) or _DEFAULT_PATH


def end_processes(directory: str, grace_s: float = launcher.GRACE_S) -> bool:
    """End all processes of a trial or a run; return whether none is left. Blocks.

    Args:
        directory: directory of the trial or the run.
        grace_s: seconds between SIGTERM and SIGKILL.
    """
    return launcher.end_all(lambda: processes_of(directory), grace_s)


def processes_of(directory: str) -> set[int]:
    """Return the living processes of a trial or a run: those with its mark, and their descendants."""
    marks = tuple(f"\0{MARK}={directory}{end}".encode() for end in ("\0", os.sep))
    table = launcher.process_table()
    alive = {one for one, (_, state) in table.items() if state not in "ZX"} - {os.getpid()}
    roots = {one for one in alive if _carries(one, marks)}
    return (roots | launcher.alive_below(roots)) - {os.getpid()} if roots else set()


def _carries(process: int, marks: tuple[bytes, ...]) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123  # hot loop
            environment = b"\0" + file.read()
            return any(mark in environment for mark in marks)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Places:
    """Absolute paths of the directories that a confined program may write to.

    Attributes:
        trial: the directory of the trial, whose path marks all its processes.
        workspace: the working directory.
        home: HOME.
        temporary: TMPDIR.
        host_home: whether HOME is the user's own.
    """

    trial: str
    workspace: str
    home: str
    temporary: str
    host_home: bool = False


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Runs the programs of one trial under a guard that ends them (`launcher.py`), in the environment of an agent.

    The base class of the other sandboxes.

    Attributes:
        env: variables of the suite and the variant, set for every program.
        network: network of the programs; in this class, always the host's.
        grading: whether it is for graders' commands, whose PATH excludes directories that an agent could write to.
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

    def forwarding(self, forwards: Mapping[int, str]) -> Self:  # noqa: ARG002
        """Return the sandbox itself: only a network of its own needs forwarded ports."""
        return self

    def argv(self, argv: Sequence[str], cwd: str = "") -> tuple[str, ...]:
        """Return the command line that runs a program under its guard, in the workspace or in `cwd`."""
        inside = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', cwd or self.places.workspace, *argv)
        return command_line(inside, hidden_variable=STARTED_BY)

    def environment(self, env: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
        """Return the complete environment: allowed variables, variables of the suite, and the mark of the trial."""
        graders = GRADER_VARIABLES if self.grading else {}
        found = {**allowed(os.environ, named), **graders, **self.env, **env}
        if self.grading:
            found["PATH"] = without_directories(found["PATH"], (self.places.trial, self.places.workspace))
        return {**found, "HOME": self.home, "TMPDIR": self.places.temporary, MARK: self.places.trial}

    def for_grading(self, places: Places, env: Mapping[str, str]) -> Self:
        """Return the same sandbox for graders' commands."""
        return replace(self, places=places, env=env, grading=True)

    def end(self, grace_s: float) -> bool:
        """End all processes of the trial; return whether none is left. Blocks."""
        return end_processes(self.places.trial, grace_s)
