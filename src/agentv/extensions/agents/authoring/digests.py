"""Hashes of files and directories by what they hold, each taken once for a suite."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from agentv.model.suite.workspace import CopiedFiles

_GIT_NAMES = ("HEAD", "packed-refs", "refs")
"""What of a `.git` directory says which commits it holds."""


class FileDigests:
    """The sha256 of files and directories.

    Args:
        reads: False: nothing is read, and every digest is empty; for a check that keeps none of them.
    """

    def __init__(self, *, reads: bool = True) -> None:
        self._reads = reads
        self._known: dict[str, str] = {}

    def of(self, path: str) -> str:
        """The hash of a file, or of all that lies in a directory: names, content, what may be executed, links.

        Raises:
            OSError: something in it cannot be read.
        """
        if not self._reads:
            return ""
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = _digest(Path(path))
        return found

    def of_places(self, copied: CopiedFiles) -> dict[str, str]:
        """Place in the workspace → digest, of every file that is copied."""
        if not self._reads:
            return {}
        source = Path(copied.source)
        if not source.is_dir():
            return {copied.path: _of_file(source)}
        return {str(Path(copied.path) / one): _of_file(source / one) for one in _entries(source)}


def _digest(path: Path) -> str:
    if not path.is_dir():
        return _of_file(path)
    whole = hashlib.sha256()
    for one in _entries(path):
        whole.update(f"{one}\0{_of_file(path / one)}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()


def _entries(directory: Path) -> Iterator[str]:
    """The files and links below a directory, relative to it and sorted; no link is followed."""
    for folder, folders, files in os.walk(directory):
        inside = Path(folder).relative_to(directory)
        linked = [one for one in folders if (Path(folder) / one).is_symlink()]
        if inside.name == ".git":
            folders[:] = [one for one in folders if one in _GIT_NAMES]
            files[:] = [one for one in files if one in _GIT_NAMES]
        folders[:] = sorted(one for one in folders if one not in linked)
        yield from (str(inside / one) for one in sorted([*files, *linked]))


def _of_file(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return hashlib.sha256(b"link\0" + os.fsencode(path.readlink())).hexdigest()
    if not stat.S_ISREG(mode):
        return ""  # a socket or a pipe holds nothing
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{digest}+x" if mode & stat.S_IXUSR else digest
