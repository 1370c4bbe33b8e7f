"""The answers of all runs of a repository, for runs that may use them again: one SQLite file.

Calls are told apart as in a journal, so that every sample has an answer of its own. What holds a secret is not kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

import msgspec

from agentv.errors import StoreError
from agentv.model.redaction import Redactor
from agentv.model.response import TargetResponse
from agentv.ports import Call, Clock
from agentv.store.answers import answer_in, answer_row
from agentv.store.encoding import to_json

VERSION = 1

_SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,  -- the hash of what determines the answer
    target TEXT NOT NULL,  -- the name of whoever was asked
    "case" TEXT NOT NULL,
    kept TEXT NOT NULL,    -- when, ISO 8601 in UTC
    answer BLOB NOT NULL   -- JSON, as in a journal
) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
"""
_PATIENCE_S = 5.0
_BATCH = 100
"""Answers that are written together; a crash loses them here, and not in the journal of their run."""


def cache_file(root: Path) -> Path:
    """Where the cache of a repository is."""
    return root / ".agentv" / "cache" / "answers.sqlite"


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache holds.

    Attributes:
        answers: by the name of whoever gave them.
        size: of the file, in bytes.
        first, last: when the oldest and the newest answer came, ISO 8601 in UTC; None where there is none.
    """

    answers: dict[str, int]
    size: int
    first: str | None
    last: str | None


class AnswerCache:
    """A shelf that outlives its run. A context manager.

    Args:
        path: of the file, which is made where it is missing.
        redactor: knows what must not be kept.

    Raises:
        StoreError: the file cannot be opened, is none of ours, or a newer agentv wrote it; so for every method.
    """

    def __init__(self, path: Path, redactor: Redactor, clock: Clock) -> None:
        self.path = path
        self._redactor = redactor
        self._clock = clock
        self._fresh: dict[str, tuple[str, str, str, str, bytes]] = {}
        with _refusals(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            ignored = path.parent / ".gitignore"
            if not ignored.exists():
                ignored.write_text("*\n", encoding="utf-8")
            self._open = _opened(path)

    def kept(self, call: Call) -> TargetResponse | None:
        """The answer to a call that an earlier run made."""
        with _refusals(self.path):
            found = self._open.execute("SELECT answer FROM answers WHERE key = ?", (call.key,)).fetchone()
        if found is None:
            return None
        try:
            answer = answer_in(msgspec.json.decode(found[0]))
        except (msgspec.DecodeError, LookupError, TypeError):
            return None  # damaged: it is asked again, and replaced
        return None if _is_empty(answer) else answer

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Keep the answer to a call, unless it is here already, says nothing or holds a secret."""
        if answer.earlier or _is_empty(answer):
            return
        body = to_json(answer_row(answer))
        if self._redactor.found_in(body):
            return
        now = _stamp(self._clock.utc())
        self._fresh[call.key] = (call.key, call.target, call.request.case_id, now, body)
        if len(self._fresh) >= _BATCH:
            self._write()

    def _write(self) -> None:
        rows, self._fresh = list(self._fresh.values()), {}
        with _refusals(self.path), self._open:
            self._open.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", rows)

    def stats(self) -> CacheStats:
        """What there is."""
        with _refusals(self.path):
            counted = dict(self._open.execute("SELECT target, count(*) FROM answers GROUP BY target ORDER BY target"))
            first, last = self._open.execute("SELECT min(kept), max(kept) FROM answers").fetchone()
            return CacheStats(counted, self.path.stat().st_size, first, last)

    def clear(self, before: str | None = None) -> int:
        """Forget all answers, or those that came before a time (ISO 8601 in UTC); how many."""
        with _refusals(self.path):
            with self._open:
                gone = self._open.execute("DELETE FROM answers WHERE kept < ?", (before or "9999",)).rowcount
            self._open.execute("VACUUM")
            return gone

    def close(self) -> None:
        """Write out what is left, and let go."""
        try:
            if self._fresh:
                self._write()
        finally:
            self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_empty(answer: TargetResponse) -> bool:
    """Whether an answer has neither a text nor a call of a tool: the next one may have, and this one would bar it."""
    return not (answer.output or "").strip() and not any(message.tool_calls for message in answer.messages)


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_PATIENCE_S)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        connection.close()
        raise StoreError(f"{path} was written by a newer agentv (format {version}, this one knows {VERSION})")
    connection.executescript(_SCHEMA)
    return connection


def _stamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"cannot use the cache {path}: {error}") from error
