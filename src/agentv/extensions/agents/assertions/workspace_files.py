"""Files of a workspace, read without following links out of it. No process of the agent runs any more."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentv.model.run.grade import Grade
from agentv.model.values.path_globs import glob_pattern, is_glob

LIMIT = 10_000_000
"""Bytes of one file that are read."""

MOST_FILES = 100_000
"""Entries of a workspace that are looked at for a glob."""

NO_WORKSPACE = Grade.errored("no-workspace", "the case has no workspace; give it or the suite one with 'workspace:'")
"""The grade of every type that looks into the workspace, for a case without one."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a file of the workspace has no content that counts."""

    reason: str


class TooManyFilesError(Exception):
    """A workspace has more entries than are looked at."""


def found(root: str, pattern: str) -> tuple[str, ...]:
    """The paths that a path or glob describes, relative to the workspace, sorted. Links to directories are not entered.

    Raises:
        TooManyFilesError: the workspace has too many entries to look at.
    """
    if not is_glob(pattern) and not pattern.endswith("/"):
        path = os.path.normpath(pattern)
        behind_a_link = os.path.commonpath((root, os.path.realpath(Path(root, path).parent))) != root
        return (path,) if not behind_a_link and os.path.lexists(f"{root}/{path}") else ()
    described = glob_pattern(pattern).fullmatch
    return tuple(sorted(path for path in _paths(root) if described(path)))


def _paths(root: str) -> Iterator[str]:
    left = [""]
    seen = 0
    while left:
        below = left.pop()
        try:
            entries = os.scandir(f"{root}/{below}")
        except OSError:
            continue  # a directory that cannot be read has no files to find
        with entries:
            for entry in entries:
                seen += 1
                if seen > MOST_FILES:
                    raise TooManyFilesError
                path = f"{below}{entry.name}"
                yield path
                if entry.is_dir(follow_symlinks=False):
                    left.append(f"{path}/")


def content(root: str, path: str) -> bytes | Unreadable:
    """The bytes of one file. A link that leads out of the workspace, and all that is no regular file, has none."""
    real = os.path.realpath(f"{root}/{path}")
    if os.path.commonpath((root, real)) != root:
        return Unreadable("is a link that leads out of the workspace")
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return Unreadable("is a link to nothing" if Path(root, path).is_symlink() else "does not exist")
    except OSError as error:
        return Unreadable(f"cannot be read: {error.strerror}")
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            return Unreadable("is a directory" if stat.S_ISDIR(mode) else "is no regular file")
        data = file.read(LIMIT + 1)
    return Unreadable(f"has more than {LIMIT // 1_000_000} MB") if len(data) > LIMIT else data


def text_content(root: str, path: str) -> str | Unreadable:
    """The text of one file, UTF-8 with or without a byte order mark."""
    data = content(root, path)
    if isinstance(data, Unreadable):
        return data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Unreadable("is not UTF-8 text")
