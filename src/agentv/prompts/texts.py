"""The examined texts, stored by digest in `.agentv/exams/`, so that `diff` can show them (SPEC section 11)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agentv.prompts.disk import DISK, Disk, put, write_all
from agentv.user_code.files import store_error


def texts_directory(home: Path) -> Path:
    """Directory of the texts; `home` contains `.agentv`, or is the repository's root."""
    return home / ".agentv" / "exams"


def keep(home: Path, texts: Mapping[str, bytes], disk: Disk = DISK) -> None:
    """Keep the texts of an exam. One that is kept already is left alone.

    Raises:
        StoreError: the system refuses; each text is kept whole or not at all.
    """
    directory = texts_directory(home)
    try:
        disk.make_directory(directory)
        if not (directory / ".gitignore").exists():  # whoever has changed it wants it so
            _keep(disk, directory / ".gitignore", b"*\n")
        for data in texts.values():
            _keep(disk, directory / hashlib.sha256(data).hexdigest(), data)
    except OSError as error:
        raise store_error("write", directory, error) from error


def kept(home: Path, sha256: str) -> bytes | None:
    """A text by its digest; None where it is not kept here, or is damaged."""
    if not sha256.isalnum():  # it comes out of a log, and is made a path
        return None
    try:
        data = (texts_directory(home) / sha256).read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == sha256 else None


def _keep(disk: Disk, path: Path, data: bytes) -> None:
    """Write a file, unless it is there as it should be: a power cut, or what is examined, may have left another."""
    with suppress(FileNotFoundError):
        if disk.stat_at(path).st_size == len(data) and not path.is_symlink() and path.read_bytes() == data:
            return
    put(disk, path, lambda descriptor: write_all(disk, descriptor, data), mode=0o600)
