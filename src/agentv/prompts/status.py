"""Change the status in `meta.yaml`: only the line of the status changes, or one is added.

An edit is accepted only if a YAML parser finds no other difference than the status. So an unexpected form of YAML leads
to a refusal, never to a damaged file.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE, S_ISREG
from typing import Any

from agentv.errors import StoreError
from agentv.model.suite.exam import PromptStatus
from agentv.prompts.disk import DISK, Disk, replace_file, sync_directory, sync_file, write_all
from agentv.user_code.files import store_error

_STATUS = re.compile(
    r"""^((?:status|'status'|"status")[ \t]*:)([ \t]*)[^#\r\n]*?([ \t]+#[^\r\n]*)?(?=\r?$)""", re.MULTILINE
)
"""The line of the status: groups for its key, the white space before its value, and its comment."""

_BOM = "\ufeff"


class RewriteError(ValueError):
    """The status in a text cannot be changed. The message says why, for users."""


def with_status(data: bytes, to: PromptStatus) -> bytes:
    """Return the file's bytes with this status; the same bytes if it already has it.

    Raises:
        RewriteError: the file is not a YAML mapping, or the status cannot be changed alone.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RewriteError(f"it is not UTF-8 text (byte {error.start + 1})") from None
    says, rest = _read_mapping(text)
    if says == to:
        return data
    if says is not None:
        edited = _STATUS.sub(lambda found: f"{found[1]}{found[2] or ' '}{to}{found[3] or ''}", text)
    else:
        line_end = "\r\n" if "\r\n" in text else "\n"
        edited = f"{text}{'' if not text or text.endswith(line_end) else line_end}status: {to}{line_end}"
    with suppress(RewriteError):
        if _read_mapping(edited) == (to, rest):
            return (_BOM if data.startswith(_BOM.encode()) else "").encode() + edited.encode()
    raise RewriteError(f"its status cannot be changed safely as it is written: write 'status: {to}' yourself")


def _read_mapping(text: str) -> tuple[object, str]:
    """Return the status in a mapping, or None if it has none, and the mapping without it.

    Raises:
        RewriteError: the text is not valid YAML, or not one document with a mapping.
    """
    import yaml

    try:
        root: Any = yaml.compose(text, yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise RewriteError(f"it is not valid YAML: {getattr(error, 'problem', None) or error}") from None
    if root is None:
        return None, ""
    if not isinstance(root, yaml.MappingNode):
        raise RewriteError("it is not a mapping")
    own = [value for key, value in root.value if key.value == "status"]
    if len(own) > 1:
        raise RewriteError("'status' appears twice in it")
    root.value = [pair for pair in root.value if pair[0].value != "status"]
    return (own[0].value if own else None), yaml.serialize(root, Dumper=yaml.CSafeDumper) if root.value else ""


_TRIES = 5
_CHUNK = 1 << 20


def write_status(path: Path, to: PromptStatus, disk: Disk = DISK) -> None:
    """Write a status into a `meta.yaml`. Only the bytes of the value change, or one line is added.

    The new text is written to a file next to it, synced to disk, and renamed over the old one. Symbolic links are
    followed, not replaced. Mode bits are kept, and so is the owner where the system allows it.

    Raises:
        StoreError: the file is missing or cannot be written, or its status cannot be changed alone.
    """
    real = Path(os.path.realpath(path))
    try:
        for _ in range(_TRIES):
            before, data = _read(real, disk)
            edited = with_status(data, to)
            if edited == data or _replace(real, before, edited, disk):
                return
    except RewriteError as error:
        raise StoreError(f"cannot write the status to {path}: {error}") from None
    except OSError as error:
        raise store_error("write", path, error) from error
    raise StoreError(f"cannot write {path}: other programs keep changing it")


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
    """Replace the file with the new text; return False, leaving it alone, if it was changed in the meantime."""

    def fill(descriptor: int) -> None:
        write_all(disk, descriptor, data)
        made = disk.stat(descriptor)  # on some file systems all files have the same owner and mode bits
        if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
            with suppress(OSError):  # only root may give files away
                disk.own(descriptor, before.st_uid, before.st_gid)
        if S_IMODE(made.st_mode) != S_IMODE(before.st_mode):
            disk.permit(descriptor, S_IMODE(before.st_mode))
        sync_file(disk, descriptor)

    def is_same() -> bool:
        now = disk.stat_at(path)
        return all(getattr(before, key) == getattr(now, key) for key in ("st_dev", "st_ino", "st_size", "st_mtime_ns"))

    done = replace_file(disk, path, fill, mode=0o600, may_replace=is_same)
    if done:
        sync_directory(disk, path.parent)
    return done
