"""The status written into `meta.yaml`: comments, order and layout stay, and a crash leaves the old file or the new."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE, S_ISREG

from agentv.errors import StoreError
from agentv.model.suite.exam import PromptStatus
from agentv.prompts.disk import DISK, Disk, put, sync_directory, sync_file, write_all
from agentv.prompts.status_text import RewriteError, with_status
from agentv.user_code.files import store_error

_TRIES = 5
_CHUNK = 1 << 20


def write_status(path: Path, to: PromptStatus, disk: Disk = DISK) -> None:
    """Write a status into a `meta.yaml`. Only the bytes of the value change, or one line is added.

    The new text goes to a file beside it, onto the disk, and then takes the place of the old one in one step. A link
    stays a link: the file that it leads to is written. Mode bits stay, and so does the owner where that is allowed.

    Raises:
        StoreError: there is no such file, it cannot be written, or its status cannot be changed without changing more.
    """
    real = Path(os.path.realpath(path))
    try:
        for _ in range(_TRIES):
            before, data = _read(real, disk)
            edited = _edited(path, data, to)
            if edited == data or _replace(real, before, edited, disk):
                return
    except OSError as error:
        raise store_error("write", path, error) from error
    raise StoreError(f"cannot write {path}: other programs keep changing it")


def _edited(path: Path, data: bytes, to: PromptStatus) -> bytes:
    try:
        return with_status(data, to)
    except RewriteError as error:
        raise StoreError(f"cannot write the status to {path}: {error}") from None


def _read(path: Path, disk: Disk) -> tuple[os.stat_result, bytes]:
    descriptor = disk.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = disk.stat(descriptor)
        if not S_ISREG(found.st_mode):
            raise StoreError(f"cannot write {path}: it is not a file")
        parts: list[bytes] = []
        while part := disk.read(descriptor, _CHUNK, sum(map(len, parts))):
            parts.append(part)
        return found, b"".join(parts)
    finally:
        disk.close(descriptor)


def _replace(path: Path, before: os.stat_result, data: bytes, disk: Disk) -> bool:
    """Put the new text into the file's place; False where the file was changed during the exam, and is left alone."""

    def fill(descriptor: int) -> None:
        write_all(disk, descriptor, data)
        _dress(descriptor, before, disk)
        sync_file(disk, descriptor)

    done = put(disk, path, fill, mode=0o600, still=lambda: not _is_changed(before, disk.stat_at(path)))
    if done:
        sync_directory(disk, path.parent)
    return done


def _dress(descriptor: int, before: os.stat_result, disk: Disk) -> None:
    """The owner and the mode bits of the file that is replaced; some file systems give the same to all files."""
    made = disk.stat(descriptor)
    if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
        with suppress(OSError):  # only root may give files away
            disk.own(descriptor, before.st_uid, before.st_gid)
    if S_IMODE(made.st_mode) != S_IMODE(before.st_mode):
        disk.permit(descriptor, S_IMODE(before.st_mode))


def _is_changed(before: os.stat_result, now: os.stat_result) -> bool:
    return any(getattr(before, key) != getattr(now, key) for key in ("st_dev", "st_ino", "st_size", "st_mtime_ns"))
