"""Texts that repeat in an index, each kept once and meant by its number."""

from __future__ import annotations

import sqlite3

from agentv.model.values.hashes import text_hash

_HELD = 10_000
"""Texts that are held in memory."""

_NAMES = 500
"""Assertions that are distinguished by name; later ones by their type alone, so that filters stay short."""


class InternedTexts:
    """Texts of one table with the columns number, hash and value.

    Args:
        table: its name.
    """

    def __init__(self, database: sqlite3.Connection, table: str) -> None:
        self._database = database
        self._numbers: dict[str, int] = {}
        self._values: dict[int, str] = {}
        self._select = f"SELECT number FROM {table} WHERE hash = ?"  # noqa: S608  # a constant, as below
        self._insert = f"INSERT INTO {table} (hash, value) VALUES (?, ?)"  # noqa: S608
        self._read = f"SELECT value FROM {table} WHERE number = ?"  # noqa: S608

    def number(self, value: str) -> int:
        """The number of a text; a new one is added."""
        found = self._numbers.get(value)
        if found is None:
            if len(self._numbers) >= _HELD:
                self._numbers.clear()
            found = self._numbers[value] = self._stored(value)
        return found

    def value(self, number: int) -> str:
        """The text with a number."""
        found = self._values.get(number)
        if found is None:
            if len(self._values) >= _HELD:
                self._values.clear()
            found = self._values[number] = self._database.execute(self._read, (number,)).fetchone()[0]
        return found

    def _stored(self, value: str) -> int:
        key = text_hash(value)
        row = self._database.execute(self._select, (key,)).fetchone()
        return int(row[0] if row else self._database.execute(self._insert, (key, value)).lastrowid or 0)


class InternedAssertions:
    """Assertions by type and name, in the order of their first row, from 0."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        rows = database.execute("SELECT type, name FROM assertions ORDER BY number")
        self._numbers: dict[tuple[str, str | None], int] = {(kind, name): at for at, (kind, name) in enumerate(rows)}

    def number(self, kind: str, name: str) -> int:
        """The number of an assertion; where there are too many names, of its type."""
        named: tuple[str, str | None] = (kind, name)
        if named not in self._numbers and len(self._numbers) >= _NAMES:
            named = (kind, None)
        found = self._numbers.get(named)
        if found is None:
            found = self._numbers[named] = len(self._numbers)
            self._database.execute("INSERT INTO assertions VALUES (?, ?, ?)", (found, *named))
        return found

    def all(self) -> list[tuple[str, str | None]]:
        """Every type and name, by number."""
        return list(self._numbers)
