"""The port to the shared database, which SQLite implements here and PostgreSQL apart, and the audit log in it.

All statements are written in what both know. Parameters are written as `:name`. Times are ISO 8601 in UTC, so that they
sort as texts. The audit log has one line for every change, written in the transaction of the change.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import asdict

from agentv.errors import StoreError
from agentv.store.files.whole_file import as_store_error, make_private
from agentv.user_code.files import store_error

Values = Mapping[str, Any]


class DatabaseUnavailableError(StoreError):
    """The database cannot be reached, or went away; the same request may succeed later."""

    answered = (503, "database-unavailable")


class Transaction:
    """Statements that take effect together, or not at all.

    Args:
        cursor: of the driver.
        written: a statement as the driver takes it.
        locking: waits until no other transaction holds the lock of a name; None: there is one that writes at a time.
    """

    def __init__(
        self, cursor: Any, written: Callable[[str], str] = str, locking: Callable[[str], object] | None = None
    ) -> None:
        self._cursor = cursor
        self._written = written
        self._locking = locking

    def run(self, statement: str, **values: Any) -> int:
        """Run a statement; the number of rows that it changed."""
        changed: int = self._cursor.execute(self._written(statement), values).rowcount
        return changed

    def run_many(self, statement: str, values: Iterable[Values]) -> None:
        """Run a statement once for each of these values."""
        self._cursor.executemany(self._written(statement), values)

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        found: list[tuple[Any, ...]] = self._cursor.execute(self._written(query), values).fetchall()
        return found

    def lock(self, name: str) -> None:
        """Wait until no other transaction holds the lock of this name; held until the end."""
        if self._locking is not None:
            self._locking(name)


class Database(Protocol):
    """A database that several threads, and several servers, use at once.

    All of it raises `DatabaseUnavailableError` where the database cannot be reached.
    """

    def transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction: committed at the end of the block, rolled back where it raises."""
        ...

    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that changes nothing, and so waits for no other one."""
        ...

    def close(self) -> None:
        """End all connections."""
        ...


def insert(transaction: Transaction, table: str, *, or_nothing: bool = False, **values: Any) -> int:
    """Insert a row and return 1, or 0 if `or_nothing` and the table has a row with this key."""
    columns, places = ", ".join(values), ", ".join(f":{column}" for column in values)
    conflict = " ON CONFLICT DO NOTHING" if or_nothing else ""
    return transaction.run(f"INSERT INTO {table} ({columns}) VALUES ({places}){conflict}", **values)  # noqa: S608  # names


def now() -> str:
    """The time as the database holds it, to the millisecond."""
    return time_text(datetime.now(UTC))


def time_text(moment: datetime) -> str:
    """A time in UTC as the database holds it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sortable_id() -> str:
    """A new id; ids sort by the time at which they were drawn."""
    return f"{time.time_ns():016x}{os.urandom(6).hex()}"


class AuditLine(Struct, frozen=True):
    """One change.

    Attributes:
        actor: who made it: the id and the name of a token, or `command line`.
        project: where; null: everywhere.
    """

    id: str
    time: str
    actor: str
    action: str
    project: str | None
    detail: str


def record(transaction: Transaction, actor: str, action: str, project: str | None, detail: str) -> None:
    """Write a line, and let every server know that something has changed."""
    transaction.run("UPDATE changes SET number = number + 1")
    line = AuditLine(sortable_id(), now(), actor, action, project, detail)
    insert(transaction, "audit", **asdict(line))


def audit_lines(database: Database, project: str, *, shared: bool = True, limit: int = 100) -> list[AuditLine]:
    """The lines of a project, newest first.

    Args:
        database: of the server.
        project: its name.
        shared: also lines that belong to no project: sign-ins, members, tokens for all projects.
        limit: of lines.
    """
    query = (
        "SELECT id, time, actor, action, project, detail FROM audit "
        "WHERE (project = :project OR project IS NULL AND :shared) ORDER BY id DESC LIMIT :limit"
    )
    with database.reading() as transaction:
        found = transaction.rows(query, project=project, shared=shared, limit=limit)
    return [AuditLine(*row) for row in found]


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
        with as_store_error("make", self._path.parent):
            make_private(self._path.parent)
        with self._errors():
            self._open = self._connected()  # its write-ahead log is kept while a connection is open

    def transaction(self) -> AbstractContextManager[Transaction]:
        """See `Database`."""
        return self._begun("BEGIN IMMEDIATE")

    def reading(self) -> AbstractContextManager[Transaction]:
        """See `Database`."""
        return self._begun("BEGIN")

    @contextmanager
    def _begun(self, begin: str) -> Iterator[Transaction]:
        with self._errors():
            connection = self._connected()
            try:
                connection.execute(begin)
                yield Transaction(connection)
                connection.execute("COMMIT")
            finally:
                connection.close()  # which rolls back what was not committed

    def close(self) -> None:
        """See `Database`."""
        self._open.close()

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
