"""The PostgreSQL implementation of the shared database, for any number of servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from agentv.errors import StoreError
from agentv.extensions.team.database import DatabaseUnavailableError, Transaction

_TIMEOUT_S = 5.0
_CONNECTIONS = 10
_PARAMETER = re.compile(r":([a-z_0-9]+)")


class PostgresDatabase:
    """A PostgreSQL database, accessed through a pool of connections that replaces broken ones.

    Args:
        address: a libpq connection URI.
        timeout_s: seconds that a request waits for a connection.

    Raises:
        DatabaseUnavailableError: the server cannot be reached, or refuses the connection.
    """

    def __init__(self, address: str, timeout_s: float = _TIMEOUT_S) -> None:
        with self._errors():
            # fails at once with the reason, while the pool would keep trying
            psycopg.connect(address, autocommit=True, connect_timeout=int(_TIMEOUT_S)).close()
            self._pool = ConnectionPool(
                address,
                min_size=1,
                max_size=_CONNECTIONS,
                timeout=timeout_s,
                check=ConnectionPool.check_connection,
                kwargs={"connect_timeout": int(_TIMEOUT_S)},
                reconnect_timeout=_TIMEOUT_S,
                open=True,
            )

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """See `Database`."""
        with self._errors(), self._pool.connection() as connection, connection.cursor() as cursor:
            lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
            yield Transaction(cursor, _translated, lambda name: cursor.execute(lock, (name,)))

    def reading(self) -> AbstractContextManager[Transaction]:
        """See `Database`."""
        return self.transaction()

    def close(self) -> None:
        """See `Database`."""
        self._pool.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (PoolTimeout, PoolClosed) as error:
            raise DatabaseUnavailableError("cannot reach the database: no connection can be made") from error
        except psycopg.OperationalError as error:
            raise DatabaseUnavailableError(f"cannot reach the database: {_first_line(error)}") from error
        except psycopg.InterfaceError as error:
            raise DatabaseUnavailableError("the connection to the database was lost") from error
        except psycopg.DatabaseError as error:
            raise StoreError(f"the database refuses: {_first_line(error)}") from error


@lru_cache(maxsize=256)
def _translated(statement: str) -> str:
    """Return a statement with parameters in psycopg's syntax. Statements are constants of this package."""
    return _PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))


def _first_line(error: psycopg.Error) -> str:
    """Return the server's message, which never contains the connection string and its password."""
    return str(error).strip().partition("\n")[0]
