"""The boundary of the files that a suite may read: its repository (SPEC section 2)."""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import EACCES
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.errors import Diagnostic
from agentv.model.suite.files import Checkout, RepositoryFile, Unavailable
from agentv.model.values.values import lazy_pattern

OUTSIDE: Final = "outside-repository"
ALLOW: Final = "to read your own files there, use --allow-outside"
REASON: Final = "it is outside the repository"
UNTRUSTED: Final = "untrusted-data"
ALLOW_DATA: Final = "if you trust this data, use --trust-data, or in an eval file 'run: {trust_data: true}'"
UNQUOTED: Final = "the file is outside the repository, so its content is not shown"

_CODE = (".py", ".sh", ".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")

KEPT_DIRECTORIES = 4096
"""Maximum number of directories whose resolved path is cached."""


GIT_URL = lazy_pattern(r"https?://(?P<user>[^/@\s]*@)?(?:www\.)?(?P<host>github\.com|gitlab\.com|bitbucket\.org)/")

FindCheckout = Callable[[RepositoryFile], "Checkout | Unavailable"]


def no_repositories(wanted: RepositoryFile) -> Checkout | Unavailable:
    """Raise RuntimeError: the FindCheckout of contexts that never fetch a repository."""
    raise RuntimeError(f"{wanted.name} is needed, but repositories cannot be fetched here")  # a bug


class OutsideError(PermissionError):
    """A file is outside the repository and must not be read."""

    def __init__(self, path: str) -> None:
        super().__init__(EACCES, REASON, path)


class Boundary(Struct):
    """The files that one suite may read, with symlinks followed.

    Attributes:
        root: the repository's root.
        is_open: files outside may be read too; their content is never quoted.
        typed: paths named on the command line, which may be read anywhere.
        closed: a directory inside the root that must not be read, such as a home directory.
        home: the home directory if it is the repository itself, else "". Resolved, with a trailing separator.
        trees: other directories that may be read. Resolved, each with a trailing separator.
    """

    root: str
    is_open: bool = False
    typed: set[str] = field(default_factory=set)
    closed: str = ""
    home: str = ""
    _inside: tuple[str, str] | None = None
    trees: list[str] = field(default_factory=list)
    _checkouts: set[str] = field(default_factory=set)
    _directories: dict[str, str] = field(default_factory=dict)

    def add(self, checkout: Checkout) -> None:
        """Allow reading the files of a commit fetched from a git host."""
        if checkout.tree not in self._checkouts:
            self._checkouts.add(checkout.tree)
            self.trees.append(_with_end(os.path.realpath(checkout.tree)))

    def holds(self, path: str) -> bool:
        """Whether a path is inside the boundary, with symlinks followed. The path need not exist."""
        if self._inside is None:
            closed = _with_end(os.path.realpath(self.closed)) if self.closed else ""
            self._inside = _with_end(os.path.realpath(self.root)), closed
        (inside, closed), real = self._inside, _with_end(self._real(path))
        is_own = real.startswith(inside) and not (closed and real.startswith(closed))
        if self.home and real.startswith(self.home):
            first, _, rest = real.removeprefix(self.home).rstrip(os.sep).partition(os.sep)
            is_hidden = first.startswith(".") and first != ".agentv"
            if is_hidden or not is_own:  # in a home directory: only `.agentv`, and code files at its top
                return first == ".agentv" or (not rest and not first.startswith(".") and first.endswith(_CODE))
        return is_own or any(real.startswith(one) for one in self.trees)

    def admits(self, path: str) -> bool:
        """Whether a path may be read."""
        return self.is_open or path in self.typed or self.holds(path)

    def check(self, path: str) -> None:
        """Raise if a path must not be read.

        Raises:
            OutsideError: the path is outside the boundary.
        """
        if not self.admits(path):
            raise OutsideError(path)

    def shown(self, found: Diagnostic) -> Diagnostic:
        """The diagnostic without the content of a file outside: its message becomes the description of its code."""
        if found.span is None or not found.span.file or self.holds(found.span.file):
            return found
        if found.code in {OUTSIDE, "missing-file"}:
            return replace(found, private=True)
        from agentv.codes import FILES  # the texts are needed only for files outside

        message = FILES.get(found.code, "This file is invalid.").rstrip(".")
        return replace(found, message=message, hint=None, notes=(UNQUOTED,), rename=None, private=True)

    def _real(self, path: str) -> str:
        """The path with symlinks followed. Directories are resolved once."""
        directory, name = os.path.split(path)
        known = self._directories.get(directory)
        if known is None:
            try:
                known = os.path.realpath(directory)
            except ValueError:  # a lone surrogate or a null byte in the name
                known = directory
            if len(self._directories) < KEPT_DIRECTORIES:
                self._directories[directory] = known
        if name in {"", ".", ".."}:
            return os.path.realpath(path)
        real = os.path.join(known, name)  # called for every file of every suite
        return os.path.realpath(real) if os.path.islink(real) else real


def boundary_around(directory: str, root: str) -> Boundary:
    """The boundary of a suite in a directory: its repository, but never the whole home directory or file system.

    If the repository contains the home directory, as in a container, that directory is left out; a suite in it, or in a
    directory tree without `.git`, may read its own directory only. If the repository is the home directory, the suite
    may also read `~/.agentv` and the code files directly in it, but no other hidden directory, as it may hold keys.
    """
    home = _with_end(os.path.expanduser("~"))  # called for every suite
    if not home.startswith(_with_end(root)):
        return Boundary(root)
    is_whole = _with_end(root) in {home, os.sep} or _with_end(directory).startswith(home)
    has_git = os.path.exists(os.path.join(root, ".git"))
    if has_git and not is_whole:
        return Boundary(root, closed=home)
    if _with_end(root) == home:
        return Boundary(directory, home=_with_end(os.path.realpath(home)))
    return Boundary(directory)


def _with_end(path: str) -> str:
    return path.rstrip(os.sep) + os.sep
