"""What is searched in an index: the words of its trials, and the ids of its cases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from operator import contains

import msgspec

_MOST_TERMS = 64
"""Terms that are looked up one by one; where more begin with a word, SQLite unites them, which takes longer."""

_AT_ONCE = 1 << 16
"""Trials whose numbers are fetched as one value: a row for each takes twice as long."""

_numbers = msgspec.json.Decoder(list[int]).decode


class CaseTexts:
    """The texts that are searched."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def trials_with(self, words: Sequence[str], end: int) -> Iterator[int]:
        """The numbers of the trials that have all of some words, or words that begin with them; some more than once.

        Args:
            words: made of letters and digits.
            end: a number that is larger than that of any trial.
        """
        terms = self._terms(words[0]) if len(words) == 1 else None
        if terms is None:
            matched = " AND ".join(f'"{word}"*' for word in words)
            return chain.from_iterable(self._database.execute(_MATCHED, (matched,)))
        return chain.from_iterable(self._trials_of(term, start) for term in terms for start in range(0, end, _AT_ONCE))

    def _terms(self, word: str) -> list[str] | None:
        """The terms that begin with a word; None: there are many, or what they are is left to SQLite."""
        if not word.isascii():  # without diacritics, but only SQLite knows which letters have none
            return None
        begun = word.lower()
        found = self._database.execute(_BEGIN_WITH, (begun, begun + "\U0010ffff", _MOST_TERMS + 1))
        terms = [term for (term,) in found]
        return terms if len(terms) <= _MOST_TERMS and all(map(str.isascii, terms)) else None

    def _trials_of(self, term: str, start: int) -> list[int]:
        (found,) = self._database.execute(_HAVING, (f'"{term}"', start, start + _AT_ONCE)).fetchone()
        return _numbers(found)


_MATCHED = "SELECT rowid FROM texts WHERE texts MATCH ?"
_HAVING = "SELECT json_group_array(rowid) FROM texts WHERE texts MATCH ? AND rowid >= ? AND rowid < ?"
_BEGIN_WITH = "SELECT term FROM words WHERE term >= ? AND term < ? LIMIT ?"


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
