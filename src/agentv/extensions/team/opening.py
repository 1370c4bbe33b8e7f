"""The database of a team's server is opened, and brought to the newest schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentv.errors import UsageError
from agentv.extensions.team.store.database import Database
from agentv.extensions.team.store.migrating import migrate
from agentv.extensions.team.store.opening import open_database
from agentv.registry.extras import missing_extra

DATABASE_VARIABLE = "AGENTV_DATABASE"
DATA = Path(".agentv", "server")
"""Directory of a server, if nothing says otherwise."""


def database_address(given: str | None, data: Path, env: Mapping[str, str]) -> str:
    """The address of the database: as given, of the environment, else a file of SQLite in the server's directory."""
    return given or env.get(DATABASE_VARIABLE) or f"sqlite:///{data / 'team.sqlite'}"


def open_team_database(address: str) -> tuple[Database, tuple[str, ...]]:
    """The database, and the migrations that were applied to it.

    Raises:
        UsageError: the address is wrong, or the driver is missing.
        DatabaseUnavailableError: it cannot be reached.
        StoreError: a newer agentv has used it.
    """
    if address.startswith(("postgresql://", "postgres://")):
        for module in ("psycopg", "psycopg_pool"):
            missing = missing_extra(module, "server", "using PostgreSQL")
            if missing is not None:
                raise UsageError(missing.message, missing.hint)
    database = open_database(address)
    try:
        return database, migrate(database)
    except BaseException:
        database.close()
        raise
