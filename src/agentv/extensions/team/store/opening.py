"""A team's database is opened by its address."""

from __future__ import annotations

import re

from agentv.errors import UsageError
from agentv.extensions.team.store.database import Database

_NOT_ENCODED = re.compile(r"[@/#\[\]]|%(?![0-9A-Fa-f]{2})")


def open_database(address: str) -> Database:
    """The database at an address: `postgresql://…`, or `sqlite:///PATH`.

    Raises:
        UsageError: the address is of neither kind, or its password is not encoded.
        DatabaseUnavailableError: it cannot be reached.
    """
    scheme, _, rest = address.partition("://")
    if scheme in ("postgresql", "postgres"):
        _check_password(rest)
        from agentv.extensions.team.store.postgresql import PostgresDatabase  # the driver is an extra

        return PostgresDatabase(address)
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from agentv.extensions.team.store.sqlite import SqliteDatabase

        return SqliteDatabase(rest[1:])
    hint = "use postgresql://USER@HOST/NAME, or sqlite:///PATH (sqlite:////PATH for an absolute path)"
    raise UsageError("the address of the database has an unknown form", hint)


def _check_password(address: str) -> None:
    """Refuse a password that would be taken for another part of the address: errors would show it."""
    before, found, _ = address.partition("?")[0].rpartition("@")
    if found and _NOT_ENCODED.search(before.partition(":")[2]):
        hint = "write %40 for @, %2F for / and %25 for %, or leave the password out and set PGPASSWORD"
        raise UsageError("the password in the address of the database must be percent-encoded", hint)
