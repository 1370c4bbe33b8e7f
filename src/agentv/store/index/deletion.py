"""A run's directory is removed: what agentv wrote into it, and nothing else."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agentv.errors import StoreError
from agentv.store.files.directory import (
    HISTORY,
    INDEX,
    JOURNAL,
    REJECTED,
    RUN,
    SEARCHED,
    SUMMARY,
    VIEWED,
    read_document,
)
from agentv.store.journal.answers import HEADER
from agentv.user_code.os_errors import store_error

_LAST = (RUN, JOURNAL)
"""What goes last: as long as there is a `run.json` it can be deleted again, and the lock is on the journal."""

_OWN = frozenset({INDEX, SUMMARY, HISTORY, REJECTED, SEARCHED, VIEWED, *_LAST})
_LEFTOVER = re.compile(rf"\.({'|'.join(map(re.escape, sorted(_OWN)))})(\.\d+)?\.new")
"""What a process left behind that was killed while it replaced a file."""

_IGNORE = ".gitignore"


def size_of_run(path: Path) -> int:
    """The bytes that `remove_run` would free."""
    found = 0
    with suppress(OSError), os.scandir(path) as entries:
        found = sum(entry.stat(follow_symlinks=False).st_size for entry in entries if _is_own(entry.name))
    return found


def check_removable(path: Path) -> None:
    """Refuse a path that is not a run directory, or is a symlink to one.

    A run whose `run.json` is gone or damaged is reported by its journal, which begins as no other file does.

    Raises:
        StoreError: it is; the text says why.
    """
    if path.is_symlink():
        raise StoreError(f"cannot delete {path}: it is a symlink; use the run's own path")
    try:
        record = read_document(path / RUN)
    except StoreError:
        if _has_journal(path):
            return
        raise
    known = isinstance(record.get("run_id"), str) and isinstance(record.get("schema_version"), int)
    if not known and not _has_journal(path):
        raise StoreError(f"cannot delete {path}: its {RUN} was not written by agentv")


def _has_journal(path: Path) -> bool:
    try:
        with (path / JOURNAL).open("rb") as file:
            return file.read(len(HEADER)) == HEADER
    except OSError:
        return False


def remove_run(path: Path) -> tuple[str, ...]:
    """Remove a run. Links in its directory are removed, never followed.

    Returns:
        The names of what is left, because it is no part of the run: then the directory stays.

    Raises:
        StoreError: it is no run, something writes to it, or the system refuses.
    """
    check_removable(path)
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise store_error("open", path, error) from error
    try:
        with _locked(directory, path):
            left = _emptied(directory)
        if not left:
            path.rmdir()
    except OSError as error:
        raise store_error("delete", path, error) from error
    finally:
        os.close(directory)
    return left


@contextmanager
def _locked(directory: int, path: Path) -> Iterator[None]:
    """Locks out other writers. A run without a journal was never written to."""
    try:
        lock = os.open(JOURNAL, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise StoreError(f"cannot delete {path}: it is still being written") from error
    finally:
        os.close(lock)


def _emptied(directory: int) -> tuple[str, ...]:
    """Remove what is the run's; the names of what is left."""
    names = os.listdir(directory)
    own = [name for name in names if _is_own(name) and not _is_directory(directory, name)]
    for name in sorted(own, key=lambda name: (name in _LAST, name == JOURNAL, name)):
        os.unlink(name, dir_fd=directory)
    left = sorted({*names} - {*own})
    if left == [_IGNORE] and _ignores_all(directory):
        os.unlink(_IGNORE, dir_fd=directory)
        return ()
    return tuple(left)


def _is_own(name: str) -> bool:
    return name in _OWN or _LEFTOVER.fullmatch(name) is not None


def _is_directory(directory: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)


def _ignores_all(directory: int) -> bool:
    """Whether the `.gitignore` is the one that a run brings along."""
    try:
        file = os.open(_IGNORE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return False
    try:
        return os.read(file, 3) == b"*\n"
    finally:
        os.close(file)
