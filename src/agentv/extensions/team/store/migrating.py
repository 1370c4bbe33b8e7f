"""The schema of the shared database: numbered files of SQL, each applied once, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from agentv.errors import StoreError
from agentv.extensions.team.store.database import Database, Transaction, now

_TABLE = """CREATE TABLE IF NOT EXISTS migrations (
  number BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  applied TEXT NOT NULL
)"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema.

    Attributes:
        number: from 1, without gaps.
        statements: SQL that PostgreSQL and SQLite both know.
    """

    number: int
    name: str
    statements: tuple[str, ...]


def migrations() -> tuple[Migration, ...]:
    """Every step, in order."""
    folder = files("agentv.extensions.team.store") / "migrations"
    return tuple(_read(one.name, one.read_text()) for one in sorted(folder.iterdir(), key=lambda one: one.name))


def migrate(database: Database, steps: tuple[Migration, ...] | None = None) -> tuple[str, ...]:
    """Bring a database to the newest schema; two servers that start at once do it once.

    Returns:
        The names of the steps that were applied.

    Raises:
        StoreError: a newer agentv has changed the schema.
        DatabaseUnavailableError: it cannot be reached.
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
        return tuple(_apply(transaction, step) for step in wanted[len(done) :])


def _apply(transaction: Transaction, step: Migration) -> str:
    for statement in step.statements:
        transaction.run(statement)
    transaction.run(
        "INSERT INTO migrations (number, name, applied) VALUES (:number, :name, :applied)",
        number=step.number,
        name=step.name,
        applied=now(),
    )
    return f"{step.number:04} {step.name}"


def _read(name: str, text: str) -> Migration:
    number, _, rest = name.removesuffix(".sql").partition("-")
    return Migration(int(number), rest, tuple(_statements(text)))


def _statements(text: str) -> Iterator[str]:
    lines = (line for line in text.splitlines() if not line.startswith("--"))
    return (one.strip() for one in "\n".join(lines).split(";") if one.strip())
