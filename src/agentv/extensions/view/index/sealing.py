"""A seal on a finished index: whether anybody changed its tables since."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_COUNTER = slice(24, 28)
"""Where SQLite counts the changes of a file, in its header."""


def seal(database: sqlite3.Connection, path: Path) -> None:
    """Note the number of changes, this one included, in the file. Nothing may be open."""
    database.execute(f"PRAGMA application_id = {_changes(path) + 1}")


def is_sealed(database: sqlite3.Connection, path: Path) -> bool:
    """Whether nothing was changed since the file was sealed."""
    found: tuple[int] = database.execute("PRAGMA application_id").fetchone()
    return found[0] == _changes(path)


def _changes(path: Path) -> int:
    with path.open("rb") as file:
        return int.from_bytes(file.read(_COUNTER.stop)[_COUNTER], "big") & 0x7FFFFFFF
