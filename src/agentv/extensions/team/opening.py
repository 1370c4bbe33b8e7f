"""Opens a team's database by its address, and migrates it with numbered SQL files, each applied once and in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from agentv.errors import StoreError, UsageError
from agentv.extensions.team.database import Database, insert, now
from agentv.registry.fields import missing_extra

_TABLE = """CREATE TABLE IF NOT EXISTS migrations (
  number BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  applied TEXT NOT NULL
)"""


class Migration(Struct, frozen=True):
    """One step of the schema's history.

    Attributes:
        number: counted from 1, without gaps.
        statements: SQL that is valid in both PostgreSQL and SQLite.
    """

    number: int
    name: str
    statements: tuple[str, ...]


def migrations() -> tuple[Migration, ...]:
    """Return every migration, in order."""
    found = []
    for file in sorted((files("agentv.extensions.team") / "migrations").iterdir(), key=lambda one: one.name):
        number, _, name = file.name.removesuffix(".sql").partition("-")
        lines = (line for line in file.read_text("utf-8").splitlines() if not line.startswith("--"))
        statements = (one.strip() for one in "\n".join(lines).split(";"))
        found.append(Migration(int(number), name, tuple(filter(None, statements))))
    return tuple(found)


def migrate(database: Database, steps: tuple[Migration, ...] | None = None) -> tuple[str, ...]:
    """Migrate a database to the newest schema; safe if two servers start at the same time.

    Returns:
        The names of the migrations that were applied.

    Raises:
        StoreError: a newer agentv has changed the schema.
        DatabaseUnavailableError: the database cannot be reached.
    """
    wanted = migrations() if steps is None else steps
    with database.transaction() as transaction:
        transaction.lock("agentv-migrations")
        transaction.run(_TABLE)
        done = transaction.rows("SELECT number, name FROM migrations ORDER BY number")
        newest = wanted[-1].number
        if done and done[-1][0] > newest:
            raise StoreError(
                f"the database has schema {done[-1][0]} ({done[-1][1]}), and this agentv knows up to {newest}: "
                "a newer agentv has used it; upgrade this server"
            )
        for step in wanted[len(done) :]:
            for statement in step.statements:
                transaction.run(statement)
            insert(transaction, "migrations", number=step.number, name=step.name, applied=now())
    return tuple(f"{step.number:04} {step.name}" for step in wanted[len(done) :])


_NOT_ENCODED = re.compile(r"[@/#\[\]]|%(?![0-9A-Fa-f]{2})")


def open_database(address: str) -> Database:
    """Open the database at an address: `postgresql://…`, or `sqlite:///PATH`.

    Raises:
        UsageError: the address has another form, its password is not percent-encoded, or the driver is missing.
        DatabaseUnavailableError: the database cannot be reached.
    """
    scheme, _, rest = address.partition("://")
    if scheme in ("postgresql", "postgres"):
        before, found, _ = rest.partition("?")[0].rpartition("@")
        # part of such a password would be parsed as another part of the address, and shown in errors
        if found and _NOT_ENCODED.search(before.partition(":")[2]):
            hint = "write %40 for @, %2F for / and %25 for %, or leave the password out and set PGPASSWORD"
            raise UsageError("the password in the address of the database must be percent-encoded", hint)
        missing = missing_extra("psycopg_pool", "server", "using PostgreSQL")
        if missing is not None:
            raise UsageError(missing.message, missing.hint)
        from agentv.extensions.team.postgresql import PostgresDatabase

        return PostgresDatabase(address)
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from agentv.extensions.team.database import SqliteDatabase

        return SqliteDatabase(rest[1:])
    hint = "use postgresql://USER@HOST/NAME, or sqlite:///PATH (sqlite:////PATH for an absolute path)"
    raise UsageError("the address of the database has an unknown form", hint)


DATABASE_VARIABLE = "AGENTV_DATABASE"
DATA = Path(".agentv", "server")
"""Default directory of a server."""


def database_address(given: str | None, data: Path, env: Mapping[str, str]) -> str:
    """Return the given address, else that of the environment, else a SQLite file in the server's directory."""
    return given or env.get(DATABASE_VARIABLE) or f"sqlite:///{data / 'team.sqlite'}"


def open_team_database(address: str) -> tuple[Database, tuple[str, ...]]:
    """Open and migrate a database, and return it with the names of the applied migrations.

    Raises:
        UsageError: the address is invalid, or the driver is missing.
        DatabaseUnavailableError: the database cannot be reached.
        StoreError: a newer agentv has changed the schema.
    """
    database = open_database(address)
    try:
        return database, migrate(database)
    except BaseException:
        database.close()
        raise


@contextmanager
def team_database(address: str) -> Iterator[Database]:
    """Open a database as `open_team_database`, and close it at the end of the block."""
    database, _ = open_team_database(address)
    try:
        yield database
    finally:
        database.close()
