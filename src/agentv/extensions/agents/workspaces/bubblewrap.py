"""Sandbox `bwrap`: namespaces of Linux, made by bubblewrap without privileges.

A program sees the system and its tools read-only (`visible_paths.py`), and no process but its own. It writes to its
workspace, its HOME and a temporary directory of its own. When it ends, or is killed, all that it started ends with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from agentv.extensions.agents import sockets
from agentv.extensions.agents.workspaces.launcher import command_line
from agentv.extensions.agents.workspaces.process_group import PROXIES, Places, ProcessGroup
from agentv.extensions.agents.workspaces.visible_paths import visible_paths
from agentv.model.suite.workspace import SandboxName
from agentv.user_code.orphans import MARK as STARTED_BY

_ALSO_TEMPORARY = "/var/tmp"  # noqa: S108  # as below
TEMPORARY = "/tmp"  # noqa: S108  # as the program sees it: a directory of its own
_USER = "1000"
"""User id inside the sandbox of a program of root: as root, tar changes owners, and Claude Code refuses to work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap(ProcessGroup):
    """Programs of one trial, confined by bubblewrap.

    Attributes:
        program: path of `bwrap`.
        user_namespace: whether one can be made; without it, only root can use bubblewrap.
        private: absolute paths that are never visible.
        forwards: with `network: loopback`: port on that of a program → socket that it leads to (`sockets.py`).
        mounts: further path of the workspace, or of a directory of it → that directory.
    """

    name: ClassVar[SandboxName] = "bwrap"

    program: str
    user_namespace: bool
    private: tuple[str, ...] = ()
    forwards: Mapping[int, str] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)

    def forwarding(self, forwards: Mapping[int, str]) -> Self:
        """The same sandbox, with ports on the loopback of each program that lead to sockets."""
        return replace(self, forwards=dict(forwards)) if self.network == "loopback" else self

    def argv(self, argv: Sequence[str], cwd: str = "") -> tuple[str, ...]:
        """The command line that runs a program confined, in the workspace or in `cwd`."""
        inside = (self.program, *self._namespaces(), *self._paths(argv), "--chdir", cwd or self.places.workspace)
        forwarding = sockets.command_line(self.forwards) if self.forwards else ()
        return command_line((*inside, "--", *forwarding, *map(_script, argv)), hidden_variable=STARTED_BY)

    def environment(self, env: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
        """The complete environment: what is allowed, what the suite sets, and what marks the trial."""
        found = {**ProcessGroup.environment(self, env, named), "TMPDIR": TEMPORARY}
        if self.network == "host":
            return found
        chosen = {*named, *env, *self.env}  # a proxy of the host's network is out of reach
        return {name: value for name, value in found.items() if name not in PROXIES or name in chosen}

    def for_grading(self, places: Places, env: Mapping[str, str]) -> Self:
        """The same sandbox for the commands of graders; the ports were those of the agent."""
        return replace(ProcessGroup.for_grading(self, places, env), forwards={})

    def _namespaces(self) -> Iterator[str]:
        yield from ("--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
        if self.user_namespace:
            yield "--unshare-user"
            if os.geteuid() == 0:
                yield from ("--uid", _USER, "--gid", _USER)
        yield from ("--cap-drop", "ALL")
        if self.network != "host":
            yield "--unshare-net"

    def _paths(self, argv: Sequence[str]) -> Iterator[str]:
        places = self.places
        path = ProcessGroup.environment(self, {})["PATH"]
        visible = visible_paths(path, argv, (*self.private, places.trial))
        for name, target in visible.links.items():
            yield from ("--symlink", target, f"/{name}")
        masks: list[str] = []
        yield from ("--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var", "--dir", "/sys")
        yield from ("--symlink", "../tmp", _ALSO_TEMPORARY, "--bind", places.temporary, TEMPORARY)
        for one, shown in visible.rules:
            yield from ("--ro-bind-try", one, one) if shown else _masked(one, masks)
        if self.forwards:
            yield from ("--ro-bind", sockets.__file__, sockets.INSIDE)
        if places.host_home:
            yield from ("--bind", places.home, places.home)
            inside = (one for one in map(os.path.realpath, self.private) if one.startswith(places.home + os.sep))
            for one in sorted(inside):
                yield from _masked(one, masks)
        for one in (places.home, places.workspace)[places.host_home :]:
            yield from ("--bind", one, one)
        for path, below in self.mounts.items():  # as links, since an agent may have made the directory one
            link = ("--symlink", f"{places.workspace}/{below}", path)
            yield from link if below else ("--bind", places.workspace, path)
        for one in masks:
            yield from ("--remount-ro", one)


def _script(word: str) -> str:
    """A word of a command line; a link to a script of an npm package as where that lies, beside what it loads."""
    if not os.path.islink(word):  # noqa: PTH114  # as text
        return word
    real = os.path.realpath(word)
    return real if "/node_modules/" in real else word


def _masked(path: str, masks: list[str]) -> Iterator[str]:
    """Hide a path. Directories become empty, and are added to those that are to be read-only in the end."""
    if os.path.isdir(path):  # noqa: PTH112  # hundreds of them
        masks.append(path)
        yield from ("--perms", "0755", "--tmpfs", path)
    elif os.path.exists(path):  # noqa: PTH110  # as above
        yield from ("--ro-bind", os.devnull, path)
