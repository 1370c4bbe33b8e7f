"""Words of the trials of an index: which trials have them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain

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
