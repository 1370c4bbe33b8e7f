"""Sandbox `bwrap`: namespaces of Linux, made by bubblewrap without privileges.

A program sees no process but its own, and read-only the system and the tools on PATH, wherever they lie. It writes to
its workspace, its HOME and a temporary directory of its own. When it ends, or is killed, all that it started ends with
it. Home directories, the project, its hidden files, temporary files and everything else is absent. A tool that lies in
a home directory is visible with the directory that it was installed into, and nothing beside it.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import ClassVar, Self

from agentv.extensions.agents import sockets
from agentv.extensions.agents.workspaces.launcher import command_line
from agentv.extensions.agents.workspaces.process_group import PROXIES, Places, ProcessGroup
from agentv.model.suite.workspace import SYSTEM_DIRECTORIES, SandboxName
from agentv.user_code.orphans import MARK as STARTED_BY

_LINKED = ("/etc/resolv.conf", "/etc/localtime", "/etc/ssl/certs/ca-certificates.crt", "/etc/hosts")
"""Files of the system that may be links into places that are not visible."""

_TOP = tuple(Path(f"/{one}") for one in SYSTEM_DIRECTORIES)
_SHARED_PARENTS = frozenset({".cargo", ".local", "local", "usr"})
"""A `bin` in here belongs to many programs: what lies beside it is not part of one installation, or is secret."""


def visible_paths(path: str, programs: Iterable[str], private: Iterable[str]) -> tuple[tuple[str, bool], ...]:
    """What a confined program sees of the host: path → whether it is visible, outermost first.

    Each rule holds for all below it that no later rule names. A hidden path is masked.

    Args:
        path: PATH of the program.
        programs: words of its command line; those that are absolute paths of files are visible.
        private: absolute paths that are never visible, nor what contains them as a whole.
    """
    hidden = {os.path.realpath(one) for one in (*private, *homes()) if one}
    tools = (*_toolchains(path, hidden), *_files(programs, hidden))
    system = [str(one) for one in _TOP if one.is_dir() and not one.is_symlink()]
    targets = [real for one in _LINKED if (real := os.path.realpath(one)) != one and Path(real).is_file()]
    rules = dict.fromkeys((*system, *targets), True) | dict.fromkeys(unreadable_for_others(), False)
    rules |= dict.fromkeys(tools, True)
    rules |= dict.fromkeys(hidden, False)
    return tuple(_needed(rules))


@cache
def homes() -> frozenset[str]:
    """Home directories."""
    found = {os.path.expanduser("~"), "/home", "/root", "/Users"}  # noqa: PTH111  # None is no error here
    return frozenset(os.path.realpath(one) for one in found if Path(one).is_dir() and one != os.sep)


@cache
def unreadable_for_others() -> tuple[str, ...]:
    """Files and directories of `/etc` that only root may read: hidden from agents of root, out of reach elsewhere."""
    if os.geteuid() != 0:
        return ()
    found = []
    for folder, directories, files in os.walk("/etc"):
        for name in (*directories, *files):
            path = f"{folder}/{name}"
            mode = os.lstat(path).st_mode
            wanted = stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
            if not stat.S_ISLNK(mode) and not mode & wanted:
                found.append(path)
        directories[:] = [name for name in directories if f"{folder}/{name}" not in found]
    return tuple(found)


def _toolchains(path: str, hidden: set[str]) -> Iterator[str]:
    """Where the programs of PATH, and this Python, are installed."""
    for entry in path.split(os.pathsep):
        if Path(entry).is_absolute() and Path(entry).is_dir():
            real = os.path.realpath(entry)
            yield from _installation(real, hidden)
            for linked in _links_out(entry):  # installations of programs that it only links to
                if Path(linked).parts[1] not in SYSTEM_DIRECTORIES:
                    packages = [*_packages(linked, hidden)]
                    yield from packages or _installation(os.path.dirname(linked), hidden)  # noqa: PTH120  # as text
            if real != entry and Path(entry).parts[1] not in SYSTEM_DIRECTORIES and not _contains_any(real, hidden):
                yield entry
    for prefix in (sys.prefix, sys.base_prefix):
        yield from _allowed(os.path.realpath(prefix), hidden)


def _installation(directory: str, hidden: set[str]) -> Iterator[str]:
    """A directory of programs, with what it was installed with where that is one tool's own."""
    parent = os.path.dirname(directory)  # noqa: PTH120  # as text
    own = Path(directory).name in {"bin", "sbin", "shims", ".bin", "condabin"}
    if own and Path(parent).name not in _SHARED_PARENTS and not _contains_any(parent, hidden):
        yield parent
    else:
        yield from _allowed(directory, hidden)


@cache
def _links_out(directory: str) -> tuple[str, ...]:
    """Where the links of a directory lead."""
    try:
        with os.scandir(directory) as entries:
            links = [entry.path for entry in entries if entry.is_symlink()]
    except OSError:
        return ()
    return tuple({real for one in links if os.path.isfile(real := os.path.realpath(one))})  # noqa: PTH113  # as text


def _packages(real: str, hidden: set[str]) -> Iterator[str]:
    """The npm packages among which a file lies, which it may load."""
    package = real.rpartition("/node_modules/")[0]
    if package and not _contains_any(f"{package}/node_modules", hidden):
        yield f"{package}/node_modules"


def _files(words: Iterable[str], hidden: set[str]) -> Iterator[str]:
    """The files that a command line names. A script is visible with its directory, where nothing private is in it."""
    for place, word in enumerate(words):
        found = shutil.which(word) if place == 0 else word
        if not found or not Path(found).is_absolute() or not Path(found).is_file():
            continue
        real = os.path.realpath(found)
        yield from _packages(real, hidden)
        if place == 0:
            yield from _installation(os.path.dirname(real), hidden)  # noqa: PTH120  # as text
        for one in {found, real}:
            if os.path.realpath(one) not in hidden:
                yield one


def _allowed(directory: str, hidden: set[str]) -> Iterator[str]:
    if directory != os.sep and not _contains_any(directory, hidden):
        yield directory


def _contains_any(directory: str, hidden: set[str]) -> bool:
    prefix = directory.rstrip(os.sep) + os.sep
    return any(one == directory or one.startswith(prefix) for one in hidden)


def _needed(rules: Mapping[str, bool]) -> Iterator[tuple[str, bool]]:
    """The rules, outermost first, without those that say the same as the one around them."""
    for path, shown in sorted(rules.items(), key=lambda rule: (rule[0].count(os.sep), rule[0])):
        around = (rules[one] for one in map(str, Path(path).parents) if one in rules)
        if shown != next(around, False):
            yield path, shown


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
        for top in filter(Path.is_symlink, _TOP):
            yield from ("--symlink", str(top.readlink()), str(top))
        masks: list[str] = []
        yield from ("--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var", "--dir", "/sys")
        yield from ("--symlink", "../tmp", _ALSO_TEMPORARY, "--bind", places.temporary, TEMPORARY)
        for one, shown in visible_paths(path, argv, (*self.private, places.trial)):
            yield from ("--ro-bind-try", one, one) if shown else _masked(one, masks)
        if self.forwards:
            yield from ("--ro-bind", sockets.__file__, sockets.PATH_IN_SANDBOX)
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
