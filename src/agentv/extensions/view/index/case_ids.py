"""Ids of the cases of an index in blocks: a text in them is looked for without a row of a table for each case."""

from __future__ import annotations

import sqlite3
from itertools import repeat
from operator import contains

_BLOCK = 4096
"""Ids of one block."""

_END = b"\n"
"""Between two ids of a block, which has none in itself."""


class CaseIds:
    """The ids of the cases of an index by their numbers, which begin with 1 and leave none out."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._full, self._last = 0, list[bytes]()
        found = database.execute("SELECT number, ids FROM id_blocks ORDER BY number DESC LIMIT 1").fetchone()
        if found is not None:
            self._full, self._last = found[0], found[1].split(_END)
            self._end_block()
        self._written = len(self._last)

    def add(self, case_id: str) -> None:
        """Take in the id of the next case."""
        self._last.append(_searched(case_id))
        self._end_block()

    def write(self) -> None:
        """Write what was taken in to the database."""
        if len(self._last) > self._written:
            self._database.execute(_WRITE, (self._full, _END.join(self._last)))
            self._written = len(self._last)

    def containing(self, text: str) -> bytearray:
        """The cases whose ids have a text anywhere, whatever the case of its letters: 1 at the number of each."""
        wanted, found = _searched(text), bytearray(1)
        for (ids,) in self._database.execute(
            "SELECT ids FROM id_blocks WHERE number < ? ORDER BY number", (self._full,)
        ):
            if wanted in ids:
                found += bytes(map(contains, ids.split(_END), repeat(wanted)))
            else:
                found += bytes(_BLOCK)
        found += bytes(map(contains, self._last, repeat(wanted)))
        return found

    def _end_block(self) -> None:
        """Begin another block where the last one is full."""
        if len(self._last) == _BLOCK:
            self._database.execute(_WRITE, (self._full, _END.join(self._last)))
            self._full, self._last, self._written = self._full + 1, [], 0


_WRITE = "INSERT OR REPLACE INTO id_blocks VALUES (?, ?)"


def _searched(text: str) -> bytes:
    return text.lower().replace("\n", " ").encode(errors="surrogatepass")
