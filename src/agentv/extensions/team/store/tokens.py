"""Projects and API tokens. A token is 256 random bits; the database has only its hash."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Literal, get_args

from msgspec import Struct

from agentv.errors import UsageError
from agentv.extensions.team.store.database import Database, Transaction, insert, now, record, time_text

Scope = Literal["read", "push", "label", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

PREFIX = "agentv_"
"""How every token begins, so that scanners of repositories know one."""

_PROJECT = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")


class Token(Struct, frozen=True):
    """What is known of a token, without its text.

    Attributes:
        id: to name it by.
        project: its project; null: every project.
        expires: null: never.
        revoked: when it was made invalid; null: it was not.
    """

    id: str
    name: str
    project: str | None
    scopes: tuple[Scope, ...]
    created: str
    expires: str | None
    revoked: str | None

    @property
    def problem(self) -> str | None:
        """Why it is not accepted."""
        if self.revoked is not None:
            return "the token was revoked"
        if self.expires is not None and self.expires <= now():
            return f"the token expired at {self.expires}"
        return None

    def allows(self, scope: Scope, project: str | None) -> bool:
        """Whether it may do something; `admin` includes all else."""
        return self.project in (None, project) and (scope in self.scopes or "admin" in self.scopes)

    @property
    def actor(self) -> str:
        """How the audit log calls it."""
        return f"{self.id} ({self.name})"


class Tokens:
    """Projects, and the tokens for them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def projects(self) -> list[str]:
        """The names of all projects, sorted."""
        with self._database.reading() as transaction:
            return [name for (name,) in transaction.rows("SELECT name FROM projects ORDER BY name")]

    def create(
        self, name: str, project: str | None, scopes: Collection[Scope], days: int | None, actor: str
    ) -> tuple[str, Token]:
        """Create a token, and its project where that is missing.

        Returns:
            The text of the token, which is stored nowhere, and what is known of it.

        Raises:
            UsageError: no project can have this name.
        """
        text = PREFIX + token_urlsafe(32)
        created = datetime.now(UTC)
        expires = None if days is None else time_text(created + timedelta(days=days))
        ordered = tuple(scope for scope in SCOPES if scope in scopes)
        made = Token(token_hex(4), name, project, ordered, time_text(created), expires, None)
        with self._database.transaction() as transaction:
            if project is not None:
                create_project(transaction, project, actor)
            insert(
                transaction,
                "tokens",
                id=made.id,
                sha256=secret_hash(text),
                name=name,
                project=project,
                scopes=" ".join(ordered),
                created=made.created,
                expires=expires,
            )
            record(transaction, actor, "token created", project, f"{made.actor}: {' '.join(ordered)}")
        return text, made

    def find(self, text: str) -> Token | None:
        """The token with a text; whoever asks sees whether it is still valid."""
        return next(iter(self._read("WHERE sha256 = :sha256", sha256=secret_hash(text))), None)

    def by_id(self, token_id: str) -> Token | None:
        """The token with an id; whoever asks sees whether it is still valid."""
        return next(iter(self._read("WHERE id = :id", id=token_id)), None)

    def all(self) -> list[Token]:
        """All tokens, also those that are not valid any more, in the order of their creation."""
        return self._read("ORDER BY created, id")

    def _read(self, which: str, **values: str) -> list[Token]:
        query = f"SELECT id, name, project, scopes, created, expires, revoked FROM tokens {which}"  # noqa: S608  # constants
        with self._database.reading() as transaction:
            found = transaction.rows(query, **values)
        return [Token(one, name, project, known_scopes(held), *times) for one, name, project, held, *times in found]

    def revoke(self, token_id: str, actor: str) -> bool:
        """Make a token invalid; whether it was valid."""
        with self._database.transaction() as transaction:
            changed = transaction.run(
                "UPDATE tokens SET revoked = :now WHERE id = :id AND revoked IS NULL", now=now(), id=token_id
            )
            if changed:
                [(project,)] = transaction.rows("SELECT project FROM tokens WHERE id = :id", id=token_id)
                record(transaction, actor, "token revoked", project, token_id)
        return changed > 0


def create_project(transaction: Transaction, name: str, actor: str) -> None:
    """Create a project if it is missing. Its name becomes part of addresses and paths.

    Raises:
        UsageError: a project cannot have this name.
    """
    if _PROJECT.fullmatch(name) is None or ".." in name:
        raise UsageError(
            "the name of a project must be 1 to 64 lower-case letters, digits, '-', '_' or '.'",
            "and begin and end with a letter or a digit",
        )
    if name.startswith("team.sqlite"):
        raise UsageError("a project cannot be called like the server's database file", "choose another name")
    if insert(transaction, "projects", or_nothing=True, name=name, created=now()):
        record(transaction, actor, "project created", name, name)


def known_scopes(stored: str) -> tuple[Scope, ...]:
    """The scopes in a text of the database; a newer agentv may have written others."""
    return tuple(scope for scope in SCOPES if scope in stored.split())


def secret_hash(text: str) -> str:
    """The hash of 256 random bits, as the database has it. SHA-256 is enough: nobody can guess them."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
