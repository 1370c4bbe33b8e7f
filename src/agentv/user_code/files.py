"""Files of agentv on disk: error messages, the directory in a user's home, and cleanup after killed processes."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from msgspec import Struct

from agentv.errors import StoreError

_REASONS = {
    errno.ENOSPC: "no space left on the disk",
    errno.EFBIG: "the file exceeds the maximum size",
    errno.EDQUOT: "the disk quota is exceeded",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "it does not exist",
    errno.ESTALE: "it was removed",
    errno.ENOTDIR: "a part of its path is a file",
    errno.EEXIST: "a file exists in its place",
    errno.EISDIR: "it is a directory",
}


def store_error(action: str, path: Path, error: OSError) -> StoreError:
    """Return a StoreError for a system error: `cannot write /x/index.jsonl: no space left on the disk`."""
    reason = _REASONS.get(error.errno or 0, error.strerror or type(error).__name__)
    return StoreError(f"cannot {action} {path}: {reason}")


class WrittenFiles(Struct, frozen=True):
    """Files that were written, and existing ones that were left unchanged."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]


def write_missing(texts: Mapping[Path, str]) -> WrittenFiles:
    """Write the files that do not exist yet.

    Raises:
        StoreError: a file cannot be written.
    """
    written, kept = list[Path](), list[Path]()
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
        except OSError as error:
            if not os.path.isfile(path):  # noqa: PTH113  # never raises
                raise store_error("write", path, error) from error
            kept.append(path)
    return WrittenFiles(tuple(written), tuple(kept))


def agentv_home(env: Mapping[str, str]) -> Path:
    """Return `$AGENTV_HOME`, or else `~/.agentv`.

    Raises:
        RuntimeError: the user has no home directory.
    """
    home = env.get("AGENTV_HOME")
    return Path(home).absolute() if home else Path.home() / ".agentv"


OLD_S = 3600.0
"""Minimum age in seconds of files to remove: on a shared disk, their process may be running on another machine."""


def is_alive(process: int) -> bool:
    """Whether a process with this id is running, or the system does not reveal it."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def sweep(directory: Path, pattern: str, *, old_s: float = OLD_S) -> None:
    """Remove files in a directory that dead processes left behind.

    Args:
        directory: the directory, without its subdirectories.
        pattern: regex of the names, whose first group is the process id.
        old_s: minimum age in seconds since the last write.
    """
    left = re.compile(pattern)
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            found = left.fullmatch(entry.name)
            if found is None or is_alive(int(found[1])) or entry.is_symlink():
                continue
            with suppress(OSError):
                if time.time() - entry.stat().st_mtime < old_s:
                    continue
                if entry.is_dir():
                    import shutil  # imports three compression modules

                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)  # noqa: PTH108


@cache
def temporary_prefix() -> str:
    """Return the prefix for this process's temporary directories, and remove the directories of dead processes.

    The prefix contains the PID namespace, because process ids are unique only within one, such as a container's.
    """
    from tempfile import gettempdir

    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        namespace = 0
    sweep(Path(gettempdir()), rf"agentv-(\d+)-{namespace}-.+", old_s=0.0)
    return f"agentv-{os.getpid()}-{namespace}-"
