"""Removal of runs: deletes the files that belong to a run and nothing else."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from agentv.errors import StoreError
from agentv.store.files.directory import (
    ARTIFACTS,
    HISTORY,
    INDEX,
    JOURNAL,
    KEPT_WORKSPACES,
    REJECTED,
    RUN,
    SUMMARY,
    VIEWED,
    has_answers,
    is_being_written,
    read_document,
)
from agentv.store.files.whole_file import as_store_error

_DELETED_LAST = (RUN, JOURNAL)
"""Files to delete last: an interrupted removal can be repeated while `run.json` exists; the journal holds the lock."""

_OWN_FILES = frozenset({INDEX, SUMMARY, HISTORY, REJECTED, VIEWED, *_DELETED_LAST})
_OWN_DIRECTORIES = frozenset({ARTIFACTS, KEPT_WORKSPACES})
_LEFTOVER = re.compile(rf"\.({'|'.join(map(re.escape, sorted(_OWN_FILES)))})(\.\d+)?\.new")
"""Temporary files of a process that was killed while replacing a file."""

_IGNORE = ".gitignore"


def size_of_run(path: Path) -> int:
    """Return the number of bytes that `remove_run` would free."""
    with suppress(OSError):
        files = [one for name in _own_names(path) for one in (path / name, *(path / name).rglob("*"))]
        return sum(one.lstat().st_size for one in files if one.is_symlink() or not one.is_dir())
    return 0


def check_removable(path: Path) -> None:
    """Raise an error for a path that is not a run directory, or is a symlink to one.

    A run whose `run.json` is missing or damaged is recognized by the header of its journal.

    Raises:
        StoreError: the path must not be removed; the message says why.
    """
    if path.is_symlink():
        raise StoreError(f"cannot delete {path}: it is a symlink; use the run's own path")
    try:
        record = read_document(path / RUN)
    except StoreError:
        if has_answers(path):
            return
        raise
    known = isinstance(record.get("run_id"), str) and isinstance(record.get("schema_version"), int)
    if not known and not has_answers(path):
        raise StoreError(f"cannot delete {path}: its {RUN} was not written by agentv")


def remove_run(path: Path) -> tuple[str, ...]:
    """Remove a run. Symlinks in its directory are removed, not followed.

    Returns:
        The names of files that are not part of the run; if there are any, they and the directory are kept.

    Raises:
        StoreError: it is not a run, a process is writing to it, or a file cannot be deleted.
    """
    check_removable(path)
    if is_being_written(path):
        raise StoreError(f"cannot delete {path}: it is still being written")
    with as_store_error("delete", path):
        left = _remove_own_files(path)
        if not left:
            path.rmdir()
    return left


def _remove_own_files(run: Path) -> tuple[str, ...]:
    """Remove the files of a run, and return the names of what is left."""
    own = _own_names(run)
    for name in sorted(own, key=lambda name: (name in _DELETED_LAST, name == JOURNAL, name)):
        if (run / name).is_symlink() or not (run / name).is_dir():
            (run / name).unlink()
        else:
            shutil.rmtree(run / name)
    left = sorted(os.listdir(run))  # noqa: PTH208
    if left == [_IGNORE] and (run / _IGNORE).read_bytes() == b"*\n":  # created with the run
        (run / _IGNORE).unlink()
        return ()
    return tuple(left)


def _own_names(run: Path) -> list[str]:
    """Return the names in a run's directory that belong to the run."""
    with os.scandir(run) as entries:
        return [entry.name for entry in entries if _is_own(entry)]


def _is_own(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir(follow_symlinks=False):
        return entry.name in _OWN_DIRECTORIES
    return entry.name in _OWN_FILES | _OWN_DIRECTORIES or _LEFTOVER.fullmatch(entry.name) is not None
