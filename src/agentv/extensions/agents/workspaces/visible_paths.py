"""Paths of the host that a confined program sees read-only: the system, and the tools on PATH, wherever they lie.

Home directories, the project, its hidden files, temporary files and everything else is absent. A tool that lies in a
home directory is visible with the directory that it was installed into, and nothing beside it.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agentv.model.suite.workspace import SYSTEM

_LINKED = ("/etc/resolv.conf", "/etc/localtime", "/etc/ssl/certs/ca-certificates.crt", "/etc/hosts")
"""Files of the system that may be links into places that are not visible."""

_SHARED_PARENTS = frozenset({".cargo", ".local", "local", "usr"})
"""A `bin` in here belongs to many programs: what lies beside it is not part of one installation, or is secret."""


@dataclass(frozen=True, slots=True)
class VisiblePaths:
    """What is visible, outermost first: each rule holds for all below it that no later rule names.

    Attributes:
        links: top-level names of the system that are links → where they lead.
        rules: path → whether it is visible; a hidden one is masked.
    """

    links: Mapping[str, str]
    rules: tuple[tuple[str, bool], ...]


def visible_paths(path: str, programs: Iterable[str], private: Iterable[str]) -> VisiblePaths:
    """What a confined program sees of the host.

    Args:
        path: PATH of the program.
        programs: words of its command line; those that are absolute paths of files are visible.
        private: absolute paths that are never visible, nor what contains them as a whole.
    """
    hidden = {os.path.realpath(one) for one in (*private, *homes()) if one}
    tools = (*_toolchains(path, hidden), *_files(programs, hidden))
    top = [Path(f"/{one}") for one in SYSTEM]
    system = [str(one) for one in top if one.is_dir() and not one.is_symlink()]
    targets = [real for one in _LINKED if (real := os.path.realpath(one)) != one and Path(real).is_file()]
    rules = dict.fromkeys((*system, *targets), True) | dict.fromkeys(unreadable_for_others(), False)
    rules |= dict.fromkeys(tools, True)
    rules |= dict.fromkeys(hidden, False)
    links = {one.name: str(one.readlink()) for one in top if one.is_symlink()}
    return VisiblePaths(links, tuple(_needed(rules)))


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
            yield from _outside_links(entry, hidden)
            if real != entry and Path(entry).parts[1] not in SYSTEM and not _contains_any(real, hidden):
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


def _outside_links(directory: str, hidden: set[str]) -> Iterator[str]:
    """The installations of programs that a directory of PATH only links to."""
    for real in _links_out(directory):
        if Path(real).parts[1] in SYSTEM:
            continue
        packages = [*_packages(real, hidden)]
        yield from packages or _installation(os.path.dirname(real), hidden)  # noqa: PTH120  # as text


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
