"""The shared database in one file, for a small team with one server. One connection for each transaction at work."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import Any

from agentv.errors import StoreError
from agentv.extensions.team.store.database import DatabaseUnavailableError, Transaction, Values
from agentv.store.files.private_files import make_private
from agentv.user_code.files import store_error

_WAITS_S = 10.0
"""Seconds for which a transaction waits for another one."""


class SqliteDatabase:
    """A file. Its journal is a write-ahead log, so that readers do not wait for writers.

    Args:
        path: of the file, which is made where it is missing.

    Raises:
        DatabaseUnavailableError: it cannot be opened.
        StoreError: its directory cannot be made.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path).absolute()
        self._idle: list[sqlite3.Connection] = []
        self._lock = Lock()
        self._closed = Event()
        try:
            make_private(self._path.parent)
        except OSError as error:
            raise store_error("make", self._path.parent, error) from error
        with self.transaction():  # says what is wrong before anything is served
            pass

    def transaction(self) -> AbstractContextManager[Transaction]:
        """See `Database`."""
        return self._begun("BEGIN IMMEDIATE")

    def reading(self) -> AbstractContextManager[Transaction]:
        """See `Database`."""
        return self._begun("BEGIN")

    @contextmanager
    def _begun(self, begin: str) -> Iterator[Transaction]:
        with self._errors():
            connection = self._taken()
            try:
                connection.execute(begin)
                yield _SqliteTransaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                connection.close()  # which rolls back
                raise
        with self._lock:
            if not self._closed.is_set():
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """See `Database`."""
        self._closed.set()
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def _taken(self) -> sqlite3.Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._connected()

    def _connected(self) -> sqlite3.Connection:
        if not self._path.exists():
            self._path.touch(mode=0o600)
        connection = sqlite3.connect(self._path, timeout=_WAITS_S, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            wrong = error.sqlite_errorcode == sqlite3.SQLITE_ERROR  # a statement; all others may succeed later
            kind = StoreError if wrong else DatabaseUnavailableError
            raise kind(f"cannot use the database {self._path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StoreError(f"cannot read the database {self._path}: {error}") from error
        except OSError as error:
            raise store_error("open", self._path, error) from error


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, **values: Any) -> int:
        return self._connection.execute(statement, values).rowcount

    def run_many(self, statement: str, values: Iterable[Values]) -> None:
        self._connection.executemany(statement, values)

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchall()

    def lock(self, name: str) -> None:
        """Nothing to do: there is one writing transaction at a time."""
