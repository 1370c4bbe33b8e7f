"""Files of agentv on disk: errors as messages, the directory in a user's home, and leftovers of killed processes."""

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
    """What the system said, in the words of a user: `cannot write /x/index.jsonl: no space is left on the disk`."""
    reason = _REASONS.get(error.errno or 0, error.strerror or type(error).__name__)
    return StoreError(f"cannot {action} {path}: {reason}")


class Made(Struct, frozen=True):
    """Files that were written, and existing ones that were left unchanged."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]


def make(texts: Mapping[Path, str]) -> Made:
    """Write the files that do not exist yet.

    Raises:
        StoreError: one cannot be written.
    """
    written, kept = list[Path](), list[Path]()
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
        except OSError as error:
            if not os.path.isfile(path):  # noqa: PTH113  # which raises nothing
                raise store_error("write", path, error) from error
            kept.append(path)
    return Made(tuple(written), tuple(kept))


def agentv_home(env: Mapping[str, str]) -> Path:
    """`$AGENTV_HOME`, else `~/.agentv`.

    Raises:
        RuntimeError: the user has no home.
    """
    home = env.get("AGENTV_HOME")
    return Path(home).absolute() if home else Path.home() / ".agentv"


OLD_S = 3600.0
"""Seconds after which a file that nobody here writes is a leftover: on a shared disk, its process may be elsewhere."""


def is_alive(process: int) -> bool:
    """Whether a process of that number runs here; where the system does not say, it does."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def sweep(directory: Path, pattern: str, *, old_s: float = OLD_S) -> None:
    """Remove the files of a directory that dead processes left.

    Args:
        directory: where they lie.
        pattern: of their names; its first group is the number of the process.
        old_s: how long ago they were last written to, at least.
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
                    import shutil  # which loads three compressors

                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)  # noqa: PTH108  # an entry has its path as text


@cache
def temporary_prefix() -> str:
    """What the names of this process's temporary directories begin with; those of dead processes are removed.

    Processes are distinguished by number within one namespace of them, such as a container's.
    """
    from tempfile import gettempdir

    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116  # no file
    except OSError:
        namespace = 0
    sweep(Path(gettempdir()), rf"agentv-(\d+)-{namespace}-.+", old_s=0.0)
    return f"agentv-{os.getpid()}-{namespace}-"
