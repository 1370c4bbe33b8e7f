"""A team's database is opened by its address."""

from __future__ import annotations

from agentv.errors import UsageError
from agentv.store.team.database import Database


def open_database(address: str) -> Database:
    """The database at an address: `postgresql://…`, or `sqlite:///PATH`.

    Raises:
        UsageError: the address is of neither kind.
        DatabaseUnavailableError: it cannot be reached.
    """
    scheme, _, rest = address.partition("://")
    if scheme in ("postgresql", "postgres"):
        from agentv.store.team.postgresql import PostgresDatabase  # the driver is an extra

        return PostgresDatabase(address)
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from agentv.store.team.sqlite import SqliteDatabase

        return SqliteDatabase(rest[1:])
    hint = "use postgresql://USER@HOST/NAME, or sqlite:///PATH (sqlite:////PATH for an absolute path)"
    raise UsageError("the address of the database has an unknown form", hint)
