"""Boundary of the files that a suite may read: its repository (SPEC section 2)."""

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
"""Directories whose real place is remembered."""


GIT_URL = lazy_pattern(r"https?://(?P<user>[^/@\s]*@)?(?:www\.)?(?P<host>github\.com|gitlab\.com|bitbucket\.org)/")

FindCheckout = Callable[[RepositoryFile], "Checkout | Unavailable"]


def no_repositories(wanted: RepositoryFile) -> Checkout | Unavailable:
    """Placeholder for contexts that never fetch a repository."""
    raise RuntimeError(f"{wanted.name} is needed, but repositories cannot be fetched here")  # a bug


class OutsideError(PermissionError):
    """A file is outside the repository, and that is not allowed."""

    def __init__(self, path: str) -> None:
        super().__init__(EACCES, REASON, path)


class Boundary(Struct):
    """The repository of one suite, symlinks followed.

    Attributes:
        root: the repository's root.
        is_open: files outside are read too, and never quoted.
        typed: paths that the command line names; they are the user's own.
        closed: a directory inside the root that does not belong to the repository, such as a home directory.
        home: the home directory, symlinks followed, with a separator at its end, where it is the repository itself.
        trees: other directories that may be read, symlinks followed, each with a separator at its end.
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
        """Files of a commit on a git host may be read too."""
        if checkout.tree not in self._checkouts:
            self._checkouts.add(checkout.tree)
            self.trees.append(_with_end(os.path.realpath(checkout.tree)))

    def holds(self, path: str) -> bool:
        """Whether a path, symlinks followed, is inside. It need not exist."""
        if self._inside is None:
            closed = _with_end(os.path.realpath(self.closed)) if self.closed else ""
            self._inside = _with_end(os.path.realpath(self.root)), closed
        (inside, closed), real = self._inside, _with_end(self._real(path))
        is_own = real.startswith(inside) and not (closed and real.startswith(closed))
        if self.home and real.startswith(self.home):
            first, _, rest = real.removeprefix(self.home).rstrip(os.sep).partition(os.sep)
            is_hidden = first.startswith(".") and first != ".agentv"
            if is_hidden or not is_own:  # of a project that is the home directory: `.agentv`, and code beside it
                return first == ".agentv" or (not rest and not first.startswith(".") and first.endswith(_CODE))
        return is_own or any(real.startswith(one) for one in self.trees)

    def admits(self, path: str) -> bool:
        """Whether a path may be read."""
        return self.is_open or path in self.typed or self.holds(path)

    def check(self, path: str) -> None:
        """Refuse a path that must not be read.

        Raises:
            OutsideError: it is outside.
        """
        if not self.admits(path):
            raise OutsideError(path)

    def shown(self, found: Diagnostic) -> Diagnostic:
        """The diagnostic as it may be shown: one about a file outside contains only the meaning of its code."""
        if found.span is None or not found.span.file or self.holds(found.span.file):
            return found
        if found.code in {OUTSIDE, "missing-file"}:
            return replace(found, private=True)
        from agentv.codes import FILES  # only what is wrong outside needs the texts

        message = FILES.get(found.code, "This file is invalid.").rstrip(".")
        return replace(found, message=message, hint=None, notes=(UNQUOTED,), rename=None, private=True)

    def _real(self, path: str) -> str:
        """The path with its symlinks followed; those of directories are looked up once."""
        directory, name = os.path.split(path)
        known = self._directories.get(directory)
        if known is None:
            try:
                known = os.path.realpath(directory)
            except ValueError:  # no directory has half a character, or a null byte, in its name
                known = directory
            if len(self._directories) < KEPT_DIRECTORIES:
                self._directories[directory] = known
        if name in {"", ".", ".."}:
            return os.path.realpath(path)
        real = os.path.join(known, name)  # noqa: PTH118  # for every file of every suite
        return os.path.realpath(real) if os.path.islink(real) else real  # noqa: PTH114  # as above


def boundary_around(directory: str, root: str) -> Boundary:
    """The files that a suite in a directory may read: its repository, but not the whole home directory or system.

    A repository that contains the home directory, as in a container, is read except for that directory. If the
    repository is the home directory, the suite's directory, `.agentv` and the code next to it are read, and nothing in
    other hidden directories, such as keys.
    """
    home = _with_end(os.path.expanduser("~"))  # noqa: PTH111  # for every suite
    if not home.startswith(_with_end(root)):
        return Boundary(root)
    is_whole = _with_end(root) in {home, os.sep} or _with_end(directory).startswith(home)
    has_git = os.path.exists(os.path.join(root, ".git"))  # noqa: PTH110, PTH118  # as above
    if has_git and not is_whole:
        return Boundary(root, closed=home)
    if _with_end(root) == home:
        return Boundary(directory, home=_with_end(os.path.realpath(home)))
    return Boundary(directory)


def _with_end(path: str) -> str:
    return path.rstrip(os.sep) + os.sep
