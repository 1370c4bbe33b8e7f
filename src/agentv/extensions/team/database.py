"""The interface to the shared database, its SQLite implementation, and the audit log.

All statements are valid in both SQLite and PostgreSQL; parameters are written as `:name`. Times are ISO 8601 in UTC, so
that they sort as text. The audit log has one line for every change, written in the same transaction.
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
    """The database cannot be reached; the same request may succeed later."""

    http_error = (503, "database-unavailable")


class Transaction:
    """An open transaction.

    Args:
        cursor: cursor of the driver.
        translate: translates a statement for the driver.
        acquire: acquires the lock of a name; None if only one transaction writes at a time anyway.
    """

    def __init__(
        self, cursor: Any, translate: Callable[[str], str] = str, acquire: Callable[[str], object] | None = None
    ) -> None:
        self._cursor = cursor
        self._translate = translate
        self._acquire = acquire

    def run(self, statement: str, **values: Any) -> int:
        """Run a statement and return the number of changed rows."""
        changed: int = self._cursor.execute(self._translate(statement), values).rowcount
        return changed

    def run_many(self, statement: str, values: Iterable[Values]) -> None:
        """Run a statement once for each set of values."""
        self._cursor.executemany(self._translate(statement), values)

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        found: list[tuple[Any, ...]] = self._cursor.execute(self._translate(query), values).fetchall()
        return found

    def lock(self, name: str) -> None:
        """Acquire the lock of a name, waiting for other transactions; it is held until this one ends."""
        if self._acquire is not None:
            self._acquire(name)


class Database(Protocol):
    """A database that threads and servers use concurrently.

    Every method raises `DatabaseUnavailableError` if the database cannot be reached.
    """

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Return a transaction that is committed at the end of the block, or rolled back if the block raises."""
        ...

    def reading(self) -> AbstractContextManager[Transaction]:
        """Return a read-only transaction, which does not wait for others."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


def insert(transaction: Transaction, table: str, *, or_nothing: bool = False, **values: Any) -> int:
    """Insert a row and return 1, or 0 if `or_nothing` and the table has a row with this key."""
    columns, places = ", ".join(values), ", ".join(f":{column}" for column in values)
    conflict = " ON CONFLICT DO NOTHING" if or_nothing else ""
    return transaction.run(f"INSERT INTO {table} ({columns}) VALUES ({places}){conflict}", **values)  # noqa: S608


def now() -> str:
    """Return the current time in the format of the database, in milliseconds."""
    return time_text(datetime.now(UTC))


def time_text(moment: datetime) -> str:
    """Return a time in the format of the database, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sortable_id() -> str:
    """Return a new id; ids sort by time of creation."""
    return f"{time.time_ns():016x}{os.urandom(6).hex()}"


class AuditLine(Struct, frozen=True):
    """One change in the audit log.

    Attributes:
        actor: who made the change: a token, a person, or `command line`.
        project: project of the change; null: none in particular.
    """

    id: str
    time: str
    actor: str
    action: str
    project: str | None
    detail: str


def record(transaction: Transaction, actor: str, action: str, project: str | None, detail: str) -> None:
    """Write a line to the audit log, and increase the number of changes that servers watch."""
    transaction.run("UPDATE changes SET number = number + 1")
    line = AuditLine(sortable_id(), now(), actor, action, project, detail)
    insert(transaction, "audit", **asdict(line))


def audit_lines(database: Database, project: str, *, shared: bool = True, limit: int = 100) -> list[AuditLine]:
    """Return the audit log of a project, newest first.

    Args:
        database: database of the server.
        project: name of the project.
        shared: include lines that belong to no project: sign-ins, and members and tokens of all projects.
        limit: maximum number of lines.
    """
    query = (
        "SELECT id, time, actor, action, project, detail FROM audit "
        "WHERE (project = :project OR project IS NULL AND :shared) ORDER BY id DESC LIMIT :limit"
    )
    with database.reading() as transaction:
        found = transaction.rows(query, project=project, shared=shared, limit=limit)
    return [AuditLine(*row) for row in found]


_TIMEOUT_S = 10.0
"""Seconds that a transaction waits for another one."""


class SqliteDatabase:
    """A SQLite database with a write-ahead log, so that readers do not wait for writers.

    Args:
        path: path of the file, which is created if it is missing.

    Raises:
        DatabaseUnavailableError: the file cannot be opened.
        StoreError: its directory cannot be created.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path).absolute()
        with as_store_error("make", self._path.parent):
            make_private(self._path.parent)
        with self._errors():
            self._open = self._connect()  # an open connection keeps the write-ahead log

    def transaction(self) -> AbstractContextManager[Transaction]:
        """See `Database`."""
        return self._begin("BEGIN IMMEDIATE")

    def reading(self) -> AbstractContextManager[Transaction]:
        """See `Database`."""
        return self._begin("BEGIN")

    @contextmanager
    def _begin(self, begin: str) -> Iterator[Transaction]:
        with self._errors():
            connection = self._connect()
            try:
                connection.execute(begin)
                yield Transaction(connection)
                connection.execute("COMMIT")
            finally:
                connection.close()  # rolls back what was not committed

    def close(self) -> None:
        """See `Database`."""
        self._open.close()

    def _connect(self) -> sqlite3.Connection:
        if not self._path.exists():
            self._path.touch(mode=0o600)
        connection = sqlite3.connect(self._path, timeout=_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            wrong = error.sqlite_errorcode == sqlite3.SQLITE_ERROR  # invalid SQL; other errors may be temporary
            kind = StoreError if wrong else DatabaseUnavailableError
            raise kind(f"cannot use the database {self._path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StoreError(f"cannot read the database {self._path}: {error}") from error
        except OSError as error:
            raise store_error("open", self._path, error) from error
