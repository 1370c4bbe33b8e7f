"""Sandbox `bwrap`: Linux namespaces, created by bubblewrap without privileges.

A program sees only its own processes. It can read the system and the tools on PATH, wherever they are installed, and
can write to its workspace, its HOME and its own temporary directory. When it exits or is killed, everything that it
started ends too. Home directories, the project, its hidden files, temporary files and everything else are absent. If a
tool is installed in a home directory, only its installation directory is visible.
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
"""System files that may be links to paths that are not visible."""

_SYSTEM_ROOTS = tuple(Path(f"/{one}") for one in SYSTEM_DIRECTORIES)
_SHARED_PARENTS = frozenset({".cargo", ".local", "local", "usr"})
"""Directories whose `bin` is shared by many programs: its siblings belong to other programs, or are secret."""


def visible_paths(path: str, programs: Iterable[str], private: Iterable[str]) -> tuple[tuple[str, bool], ...]:
    """Return which paths of the host a confined program sees, as pairs of path and visibility, outermost first.

    A rule applies to everything below its path, except where a later rule applies. Hidden paths are masked.

    Args:
        path: PATH of the program.
        programs: words of its command line; the program, and files given by absolute paths, are visible.
        private: absolute paths that are never visible; directories that contain them are not visible as a whole.
    """
    hidden = {os.path.realpath(one) for one in (*private, *homes()) if one}
    tools = (*_toolchains(path, hidden), *_files(programs, hidden))
    system = [str(one) for one in _SYSTEM_ROOTS if one.is_dir() and not one.is_symlink()]
    targets = [real for one in _LINKED if (real := os.path.realpath(one)) != one and Path(real).is_file()]
    rules = dict.fromkeys((*system, *targets), True) | dict.fromkeys(unreadable_for_others(), False)
    rules |= dict.fromkeys(tools, True)
    rules |= dict.fromkeys(hidden, False)
    return tuple(_without_redundant(rules))


@cache
def homes() -> frozenset[str]:
    """Return the home directories on this machine."""
    found = {os.path.expanduser("~"), "/home", "/root", "/Users"}  # noqa: PTH111  # Path.home() can raise
    return frozenset(os.path.realpath(one) for one in found if Path(one).is_dir() and one != os.sep)


@cache
def unreadable_for_others() -> tuple[str, ...]:
    """Return the paths in `/etc` that only root may read, to hide them from root's agents; empty for other users."""
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
    """Yield the directories in which the programs on PATH and this Python are installed."""
    for entry in path.split(os.pathsep):
        if Path(entry).is_absolute() and Path(entry).is_dir():
            real = os.path.realpath(entry)
            yield from _installation(real, hidden)
            for linked in _links_out(entry):  # programs installed elsewhere and linked here
                if Path(linked).parts[1] not in SYSTEM_DIRECTORIES:
                    packages = [*_packages(linked, hidden)]
                    yield from packages or _installation(os.path.dirname(linked), hidden)  # noqa: PTH120  # as text
            if real != entry and Path(entry).parts[1] not in SYSTEM_DIRECTORIES and not _contains_any(real, hidden):
                yield entry
    for prefix in (sys.prefix, sys.base_prefix):
        yield from _allowed(os.path.realpath(prefix), hidden)


def _installation(directory: str, hidden: set[str]) -> Iterator[str]:
    """Yield a directory of programs, or its parent if that contains the installation of one tool only."""
    parent = os.path.dirname(directory)  # noqa: PTH120  # as text
    own = Path(directory).name in {"bin", "sbin", "shims", ".bin", "condabin"}
    if own and Path(parent).name not in _SHARED_PARENTS and not _contains_any(parent, hidden):
        yield parent
    else:
        yield from _allowed(directory, hidden)


@cache
def _links_out(directory: str) -> tuple[str, ...]:
    """Return the files that the links in a directory lead to."""
    try:
        with os.scandir(directory) as entries:
            links = [entry.path for entry in entries if entry.is_symlink()]
    except OSError:
        return ()
    return tuple({real for one in links if os.path.isfile(real := os.path.realpath(one))})  # noqa: PTH113  # as text


def _packages(real: str, hidden: set[str]) -> Iterator[str]:
    """Yield the `node_modules` directory that contains a file, since the file may load packages from it."""
    package = real.rpartition("/node_modules/")[0]
    if package and not _contains_any(f"{package}/node_modules", hidden):
        yield f"{package}/node_modules"


def _files(words: Iterable[str], hidden: set[str]) -> Iterator[str]:
    """Yield the files named in a command line, with the installation of the program and the npm packages of each."""
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


def _without_redundant(rules: Mapping[str, bool]) -> Iterator[tuple[str, bool]]:
    """Yield the rules, outermost first, without those that repeat the enclosing one."""
    for path, shown in sorted(rules.items(), key=lambda rule: (rule[0].count(os.sep), rule[0])):
        around = (rules[one] for one in map(str, Path(path).parents) if one in rules)
        if shown != next(around, False):
            yield path, shown


_VAR_TMP = "/var/tmp"  # noqa: S108
TEMPORARY = "/tmp"  # noqa: S108  # in the sandbox, which has its own
_USER = "1000"
"""User id in the sandbox if agentv runs as root: as root, tar changes owners, and Claude Code refuses to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap(ProcessGroup):
    """The bubblewrap sandbox of one trial.

    Attributes:
        program: path of `bwrap`.
        user_namespace: whether to create a user namespace; without one, only root can use bubblewrap.
        private: absolute paths that are never visible.
        forwards: for `network: loopback`: port on a program's loopback interface → socket it leads to (`sockets.py`).
        mounts: absolute path in the sandbox → directory of the workspace linked there; empty for the workspace itself.
    """

    name: ClassVar[SandboxName] = "bwrap"

    program: str
    user_namespace: bool
    private: tuple[str, ...] = ()
    forwards: Mapping[int, str] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)

    def forwarding(self, forwards: Mapping[int, str]) -> Self:
        """Return a copy of the sandbox that forwards ports on each program's loopback interface to sockets."""
        return replace(self, forwards=dict(forwards)) if self.network == "loopback" else self

    def argv(self, argv: Sequence[str], cwd: str = "") -> tuple[str, ...]:
        """Return the command line that runs a program confined, in the workspace or in `cwd`."""
        inside = (self.program, *self._namespaces(), *self._paths(argv), "--chdir", cwd or self.places.workspace)
        forwarding = sockets.command_line(self.forwards) if self.forwards else ()
        return command_line((*inside, "--", *forwarding, *map(_script, argv)), hidden_variable=STARTED_BY)

    def environment(self, env: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
        """Return the complete environment: allowed variables, variables of the suite, and the mark of the trial."""
        found = {**ProcessGroup.environment(self, env, named), "TMPDIR": TEMPORARY}
        if self.network == "host":
            return found
        chosen = {*named, *env, *self.env}  # a proxy in the host's network is unreachable
        return {name: value for name, value in found.items() if name not in PROXIES or name in chosen}

    def for_grading(self, places: Places, env: Mapping[str, str]) -> Self:
        """Return the same sandbox for graders' commands, without the agent's ports."""
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
        for top in filter(Path.is_symlink, _SYSTEM_ROOTS):
            yield from ("--symlink", str(top.readlink()), str(top))
        masks: list[str] = []
        yield from ("--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var", "--dir", "/sys")
        yield from ("--symlink", "../tmp", _VAR_TMP, "--bind", places.temporary, TEMPORARY)
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
        for path, below in self.mounts.items():  # as links, since an agent may have made the directory a link
            link = ("--symlink", f"{places.workspace}/{below}", path)
            yield from link if below else ("--bind", places.workspace, path)
        for one in masks:
            yield from ("--remount-ro", one)


def _script(word: str) -> str:
    """Return a word of a command line. A link to a script in an npm package is resolved, so that its imports work."""
    if not os.path.islink(word):  # noqa: PTH114  # as text
        return word
    real = os.path.realpath(word)
    return real if "/node_modules/" in real else word


def _masked(path: str, masks: list[str]) -> Iterator[str]:
    """Yield the options that hide a path. Directories become empty, and are added to `masks` to be read-only later."""
    if os.path.isdir(path):  # noqa: PTH112  # hot loop
        masks.append(path)
        yield from ("--perms", "0755", "--tmpfs", path)
    elif os.path.exists(path):  # noqa: PTH110
        yield from ("--ro-bind", os.devnull, path)
