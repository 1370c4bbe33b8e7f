"""Another status in the text of `meta.yaml`: only the line of the status changes, or one is added.

The edit is taken only if the parser reads both texts alike but for the status. So a form of YAML that is not foreseen
leads to a refusal, never to a damaged file.
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
from agentv.prompts.disk import DISK, Disk, put, sync_directory, sync_file, write_all
from agentv.user_code.files import store_error

_STATUS = re.compile(
    r"""^((?:status|'status'|"status")[ \t]*:)([ \t]*)[^#\r\n]*?([ \t]+#[^\r\n]*)?(?=\r?$)""", re.MULTILINE
)
"""The line of the status: its key, the white space before its value, and its comment."""

_BOM = "\ufeff"


class RewriteError(ValueError):
    """The text cannot be given another status; says why, in the words of a user."""


def with_status(data: bytes, to: PromptStatus) -> bytes:
    """The file with a status; the same bytes where it says so already.

    Raises:
        RewriteError: it is no YAML mapping, or changing the status alone is impossible.
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
    """The status that a mapping says, None if it says none, and the mapping without it.

    Raises:
        RewriteError: the text is no YAML, or not one document with a mapping.
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

    The new text goes to a file beside it, onto the disk, and then takes the place of the old one in one step. A link
    stays a link: the file that it leads to is written. Mode bits stay, and so does the owner where that is allowed.

    Raises:
        StoreError: there is no such file, it cannot be written, or its status cannot be changed without changing more.
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
    """Put the new text into the file's place; False where the file was changed during the exam, and is left alone."""

    def fill(descriptor: int) -> None:
        write_all(disk, descriptor, data)
        made = disk.stat(descriptor)  # some file systems give all files the same owner and mode bits
        if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
            with suppress(OSError):  # only root may give files away
                disk.own(descriptor, before.st_uid, before.st_gid)
        if S_IMODE(made.st_mode) != S_IMODE(before.st_mode):
            disk.permit(descriptor, S_IMODE(before.st_mode))
        sync_file(disk, descriptor)

    def is_same() -> bool:
        now = disk.stat_at(path)
        return all(getattr(before, key) == getattr(now, key) for key in ("st_dev", "st_ino", "st_size", "st_mtime_ns"))

    done = put(disk, path, fill, mode=0o600, still=is_same)
    if done:
        sync_directory(disk, path.parent)
    return done
