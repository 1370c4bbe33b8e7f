"""The answers of all runs of a repository, for runs that may use them again: one SQLite file.

Calls are distinguished as in a journal, so that every sample has an answer of its own. What holds a secret is not kept.

A run sees the answers that were there when it began, whatever is put there while it goes. The cache is there to save
calls: one that breaks is done without, and said to be.
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
_NEW = ("", "-wal", "-shm", "-journal")
"""What the names of the files of a database end with."""

_PATIENCE_S = 5.0
_BATCH = 100
"""Answers that are written together; a crash loses them here, and not in the journal of their run."""


def cache_file(root: Path) -> Path:
    """The path of the answer cache of a repository, which need not exist."""
    return root / ".agentv" / "cache" / "answers.sqlite"


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Totals of a cache.

    Attributes:
        answers: by the name of whoever gave them.
        size: of the file, in bytes.
        first, last: when the oldest and the newest answer came, ISO 8601 in UTC; None for an empty cache.
    """

    answers: dict[str, int]
    size: int
    first: str | None
    last: str | None


class AnswerCache(Closing):
    """Stored answers that later runs use too. A context manager.

    Args:
        path: of the file, which is made where it is missing.
        redactor: knows what must not be kept.
        mends: a damaged file is put aside, and another one begun.

    Attributes:
        notes: what people should know of it, such as that it was damaged.

    Raises:
        StoreError: the file cannot be opened, is not a cache, or a newer agentv wrote it; so for `stats` and `clear`.
    """

    def __init__(self, path: Path, redactor: Redactor, clock: Clock, *, repairs: bool = False) -> None:
        self.path = path
        self.notes: list[str] = []
        self._redactor = redactor
        self._clock = clock
        self._fresh: dict[str, tuple[str, str, str, str, bytes, str]] = {}
        self._broken = False
        with _refusals(path):
            make_private(path.parent)
            ignore(path.parent)
            self._open = self._repaired(path) if repairs else _opened(path)
            self._earlier = _snapshot(path) if repairs else self._open

    def _repaired(self, path: Path) -> sqlite3.Connection:
        """The database; a damaged one is put beside it, and a new one begun."""
        try:
            opened = _opened(path)
            opened.execute("SELECT count(*) FROM answers").fetchone()
        except sqlite3.OperationalError:
            raise  # the system refuses, and the file may be whole
        except sqlite3.DatabaseError as error:
            aside = path.with_name(f"{path.name}.damaged")
            for end in _NEW:
                with suppress(FileNotFoundError):
                    Path(f"{path}{end}").replace(f"{aside}{end}")
            self.notes.append(f"the cache is damaged ({error}): moved it to {aside.name} and started a new one")
            return _opened(path)
        return opened

    def stored_answer(self, call: Call) -> TargetResponse | None:
        """The answer to a call that an earlier run made."""
        if self._broken:
            return None
        try:
            found = self._earlier.execute(
                'SELECT target, "case", kept, answer, sum FROM answers WHERE key = ?', (call.key,)
            ).fetchone()
        except (sqlite3.Error, OSError) as error:
            self._breaks(error)
            return None
        if found is None or _sum(call.key, *found[:-1]) != found[-1]:
            return None
        try:
            answer = answer_in(msgspec.json.decode(found[3]))
        except (msgspec.DecodeError, LookupError, TypeError):
            return None  # damaged: it is asked again, and replaced
        return None if _is_empty(answer) else answer

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Keep the answer to a call, unless it is here already, says nothing or holds a secret."""
        if self._broken or answer.earlier or _is_empty(answer):
            return
        body = to_json(answer_row(answer))
        if self._redactor.found_in(body):
            return
        fields = (call.target, call.request.case_id, timestamp(self._clock.utc(), "seconds"), body)
        self._fresh[call.key] = (call.key, *fields, _sum(call.key, *fields))
        if len(self._fresh) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write out what is left. A cache that cannot be written is not used any more; `notes` says why."""
        rows, self._fresh = list(self._fresh.values()), {}
        if not rows or self._broken:
            return
        try:
            with self._open:
                self._open.executemany(_INSERT, rows)
        except (sqlite3.Error, OSError) as error:
            self._breaks(error)

    def _breaks(self, error: Exception) -> None:
        self._broken = True
        self.notes.append(f"the cache {self.path.name} is disabled: {error}; the run continues without it")

    def stats(self) -> CacheStats:
        """The totals of this cache."""
        with _refusals(self.path):
            counted = dict(self._open.execute("SELECT target, count(*) FROM answers GROUP BY target ORDER BY target"))
            first, last = self._open.execute("SELECT min(kept), max(kept) FROM answers").fetchone()
            return CacheStats(counted, self.path.stat().st_size, first, last)

    def clear(self, before: str | None = None) -> int:
        """Forget all answers, or those that came before a time (ISO 8601 in UTC); how many."""
        with _refusals(self.path):
            with self._open:
                deleted = self._open.execute("DELETE FROM answers WHERE kept < ?", (before or "9999",)).rowcount
            self._open.execute("VACUUM")
            return deleted

    def close(self) -> None:
        """Write out what is left, and let go."""
        self.flush()
        self._earlier.close()
        self._open.close()


def _is_empty(answer: TargetResponse) -> bool:
    """Whether an answer has neither a text nor a call of a tool: the next one may have, and this one would bar it."""
    return not (answer.output or "").strip() and not any(message.tool_calls for message in answer.messages)


def _sum(key: str, target: str, case: str, kept_at: str, answer: bytes) -> str:
    """The checksum of an entry, whose fields are distinguished by their lengths."""
    parts = (key.encode(), target.encode(errors="replace"), case.encode(errors="replace"), kept_at.encode(), answer)
    return sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).hexdigest()[:32]


def _opened(path: Path) -> sqlite3.Connection:
    for end in _NEW[1:]:
        beside = Path(f"{path}{end}")
        if beside.is_symlink():
            beside.unlink()
    os.close(open_private(path, os.O_RDWR | os.O_CREAT))
    connection = sqlite3.connect(path, timeout=_PATIENCE_S)
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
    """A connection that sees what is there now, and nothing that comes later."""
    connection = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM (SELECT 1 FROM answers LIMIT 1)").fetchone()
    return connection


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"cannot use the cache {path}: {error}") from error
