"""Cache of answers for all runs of a repository: one SQLite file.

Calls have the same keys as in a journal, so every sample has its own answer. Answers with secrets are not stored.

A run only sees the answers that were stored before it started. The cache only saves calls, so a run continues without
it if it fails, with a note.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from agentv.errors import StoreError
from agentv.model.redaction import Redactor
from agentv.model.values.formatting import timestamp
from agentv.model.values.response import TargetResponse
from agentv.ports import Call, Clock
from agentv.store.files.directory import Closing, ignore
from agentv.store.files.encoding import to_json
from agentv.store.files.whole_file import make_private, open_private
from agentv.store.journal.answers import answer_in, answer_row

VERSION = 3

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,  -- the hash of what determines the answer
    target TEXT NOT NULL,  -- the name of whoever was asked
    "case" TEXT NOT NULL,
    kept TEXT NOT NULL,    -- when, ISO 8601 in UTC
    answer BLOB NOT NULL,  -- JSON, as in a journal
    sum TEXT NOT NULL      -- SHA-256 of all of it, 32 digits
) WITHOUT ROWID;
"""
_INSERT = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)"
_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Suffixes of the files of a database."""

_TIMEOUT_S = 5.0
_BATCH = 100
"""Answers that are written in one transaction. A crash loses them here, but not in the journal of their run."""


def cache_file(root: Path) -> Path:
    """Return the path of a repository's cache, which need not exist."""
    return root / ".agentv" / "cache" / "answers.sqlite"


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Totals of a cache.

    Attributes:
        answers: name of the target → number of answers.
        size: size of the file in bytes.
        first, last: times of the oldest and the newest answer, ISO 8601 in UTC; None for an empty cache.
    """

    answers: dict[str, int]
    size: int
    first: str | None
    last: str | None


class AnswerCache(Closing):
    """Stored answers, shared by runs. A context manager.

    Args:
        path: path of the file, which is created if missing.
        redactor: detects answers with secrets, which are not stored.
        clock: gives the times of answers.
        repairs: whether to move a damaged file aside and start a new one.

    Attributes:
        notes: messages for users, such as that the cache was damaged.

    Raises:
        StoreError: the file cannot be opened, is not a cache, or was written by a newer agentv. Also from `stats` and
            `clear`.
    """

    def __init__(self, path: Path, redactor: Redactor, clock: Clock, *, repairs: bool = False) -> None:
        self.path = path
        self.notes: list[str] = []
        self._redactor = redactor
        self._clock = clock
        self._pending: dict[str, tuple[str, str, str, str, bytes, str]] = {}
        self._broken = False
        with _store_errors(path):
            make_private(path.parent)
            ignore(path.parent)
            self._connection = self._repaired(path) if repairs else _opened(path)
            self._earlier = _snapshot(path) if repairs else self._connection

    def _repaired(self, path: Path) -> sqlite3.Connection:
        """Open the database; move a damaged one aside and start a new one."""
        try:
            opened = _opened(path)
            opened.execute("SELECT count(*) FROM answers").fetchone()
        except sqlite3.OperationalError:
            raise  # an error of the operating system; the file may be intact
        except sqlite3.DatabaseError as error:
            aside = path.with_name(f"{path.name}.damaged")
            for end in _SUFFIXES:
                with suppress(FileNotFoundError):
                    Path(f"{path}{end}").replace(f"{aside}{end}")
            self.notes.append(f"the cache is damaged ({error}): moved it to {aside.name} and started a new one")
            return _opened(path)
        return opened

    def stored_answer(self, call: Call) -> TargetResponse | None:
        """Return an earlier run's answer to a call, or None."""
        if self._broken:
            return None
        try:
            found = self._earlier.execute(
                'SELECT target, "case", kept, answer, sum FROM answers WHERE key = ?', (call.key,)
            ).fetchone()
        except (sqlite3.Error, OSError) as error:
            self._disable(error)
            return None
        if found is None or _checksum(call.key, *found[:-1]) != found[-1]:
            return None
        try:
            answer = answer_in(msgspec.json.decode(found[3]))
        except (msgspec.DecodeError, LookupError, TypeError):
            return None  # damaged; the new answer will replace it
        return None if _is_empty(answer) else answer

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Store the answer to a call, unless it was made earlier, is empty, or contains a secret."""
        if self._broken or answer.earlier or _is_empty(answer):
            return
        body = to_json(answer_row(answer))
        if self._redactor.found_in(body):
            return
        fields = (call.target, call.request.case_id, timestamp(self._clock.utc(), "seconds"), body)
        self._pending[call.key] = (call.key, *fields, _checksum(call.key, *fields))
        if len(self._pending) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the pending answers. If that fails, the cache is disabled, and `notes` says why."""
        rows, self._pending = list(self._pending.values()), {}
        if not rows or self._broken:
            return
        try:
            with self._connection:
                self._connection.executemany(_INSERT, rows)
        except (sqlite3.Error, OSError) as error:
            self._disable(error)

    def _disable(self, error: Exception) -> None:
        self._broken = True
        self.notes.append(f"the cache {self.path.name} is disabled: {error}; the run continues without it")

    def stats(self) -> CacheStats:
        """Return the totals of this cache."""
        with _store_errors(self.path):
            counted = dict(
                self._connection.execute("SELECT target, count(*) FROM answers GROUP BY target ORDER BY target")
            )
            first, last = self._connection.execute("SELECT min(kept), max(kept) FROM answers").fetchone()
            return CacheStats(counted, self.path.stat().st_size, first, last)

    def clear(self, before: str | None = None) -> int:
        """Delete all answers, or those from before a time (ISO 8601 in UTC), and return their number."""
        with _store_errors(self.path):
            with self._connection:
                deleted = self._connection.execute("DELETE FROM answers WHERE kept < ?", (before or "9999",)).rowcount
            self._connection.execute("VACUUM")
            return deleted

    def close(self) -> None:
        """Write the pending answers and close the database."""
        self.flush()
        self._earlier.close()
        self._connection.close()


def _is_empty(answer: TargetResponse) -> bool:
    """Whether an answer has neither text nor tool calls. It is not cached, because a new call may give a better one."""
    return not (answer.output or "").strip() and not any(message.tool_calls for message in answer.messages)


def _checksum(key: str, target: str, case: str, kept_at: str, answer: bytes) -> str:
    """Return the checksum of an entry; the lengths of fields are included to keep them apart."""
    parts = (key.encode(), target.encode(errors="replace"), case.encode(errors="replace"), kept_at.encode(), answer)
    return sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).hexdigest()[:32]


def _opened(path: Path) -> sqlite3.Connection:
    for end in _SUFFIXES[1:]:
        sidecar = Path(f"{path}{end}")
        if sidecar.is_symlink():
            sidecar.unlink()
    os.close(open_private(path, os.O_RDWR | os.O_CREAT))
    connection = sqlite3.connect(path, timeout=_TIMEOUT_S)
    with ExitStack() as closing:
        closing.callback(connection.close)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise StoreError(f"{path} was written by a newer agentv (format {version}; this one reads up to {VERSION})")
        if 0 < version < VERSION:
            connection.execute("DROP TABLE IF EXISTS answers")
        connection.executescript(_SCHEMA)
        if version < VERSION:
            connection.execute(f"PRAGMA user_version = {VERSION}")
        closing.pop_all()
    return connection


def _snapshot(path: Path) -> sqlite3.Connection:
    """Open a connection that sees the current content but no later changes."""
    connection = sqlite3.connect(path, timeout=_TIMEOUT_S, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM (SELECT 1 FROM answers LIMIT 1)").fetchone()
    return connection


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"cannot use the cache {path}: {error}") from error
