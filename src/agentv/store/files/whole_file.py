"""Atomic writes of files at a path that the user gives."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agentv.errors import StoreError
from agentv.store.files.private_files import check_link, new_private
from agentv.user_code.files import store_error, sweep


def write_whole(path: Path, chunks: Iterable[str]) -> None:
    """Write a file piece by piece, in UTF-8; it takes the place of an older one when it is whole.

    A symbolic link stays one: what it points to is written, where that lies below its directory. What UTF-8 cannot say
    becomes a question mark.

    Raises:
        StoreError: the system refuses. An older file is then as it was. So too whatever the chunks raise.
    """
    with _refusals(path):
        real = check_link(path)
        new = _beside(real)
        try:
            with open(new_private(new), "w", encoding="utf-8", errors="replace", newline="") as file:  # noqa: PTH123  # a descriptor has no path
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
            new.replace(real)
        finally:
            new.unlink(missing_ok=True)  # there only where it did not take the other's place


def check_place(path: Path) -> None:
    """Refuse a place where a file cannot be written. The directory is tried out: what its mode says may not hold.

    Raises:
        StoreError: something that is no file is there, or the system refuses.
    """
    with _refusals(path):
        if path.is_dir():
            raise StoreError(f"cannot write {path}: it is a directory")
        if path.exists() and not path.is_file():
            raise StoreError(f"cannot write {path}: it is not a regular file")
        real = check_link(path)
        sweep(real.parent, rf"\.{re.escape(real.name)}\.(\d+)\.new")
        new = _beside(real)
        os.close(new_private(new))
        new.unlink()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.new")


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise store_error("write", path, error) from error
