"""Sessions of people who are signed in with a browser. The database has only the hash of what the browser holds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from secrets import token_urlsafe

from msgspec import Struct

from agentv.extensions.team.store.audit import record
from agentv.extensions.team.store.database import Database, time_text
from agentv.extensions.team.store.members import Person
from agentv.extensions.team.store.tokens import Token, secret_hash

LONGEST = timedelta(days=7)
"""How long a session lasts at most."""

LONGEST_IDLE = timedelta(hours=12)
"""How long a session lasts without any request."""

_USED_EVERY = timedelta(minutes=1)
"""How exactly the database knows when a session was last used."""


class Session(Struct, frozen=True):
    """Who is signed in.

    Attributes:
        token: id of the API token that was exchanged for the session; None: `person` was signed in by a provider.
    """

    token: str | None
    person: Person


class Sessions:
    """The sessions of a database.

    Args:
        database: that has them.
        clock: the time.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock

    def begin(self, signed_in: Person | Token) -> str:
        """Begin a session; what the browser holds from now on."""
        text, moment = token_urlsafe(32), self._clock()
        token, person = (None, signed_in) if isinstance(signed_in, Person) else (signed_in.id, Person("", ""))
        with self._database.transaction() as transaction:
            transaction.run("DELETE FROM sessions WHERE expires <= :now", now=time_text(moment))
            transaction.run(
                "INSERT INTO sessions (sha256, token, issuer, subject, email, created, used, expires) "
                "VALUES (:sha256, :token, :issuer, :subject, :email, :now, :now, :expires)",
                sha256=secret_hash(text),
                token=token,
                issuer=person.issuer,
                subject=person.subject,
                email=person.email,
                now=time_text(moment),
                expires=time_text(moment + LONGEST),
            )
            record(transaction, signed_in.actor, "signed in", None, person.issuer or "with the token")
        return text

    def find(self, text: str) -> Session | None:
        """The session of a browser; None: it has none, or it has ended or expired."""
        moment, key = self._clock(), secret_hash(text)
        with self._database.reading() as transaction:
            found = transaction.rows(
                "SELECT token, issuer, subject, email, used FROM sessions "
                "WHERE sha256 = :key AND expires > :now AND used > :idle",
                key=key,
                now=time_text(moment),
                idle=time_text(moment - LONGEST_IDLE),
            )
        if not found:
            return None
        token, issuer, subject, email, used = found[0]
        if used < time_text(moment - _USED_EVERY):
            with self._database.transaction() as transaction:
                transaction.run("UPDATE sessions SET used = :now WHERE sha256 = :key", now=time_text(moment), key=key)
        return Session(token, Person(issuer, subject, email))

    def end(self, text: str, actor: str) -> bool:
        """End a session; whether there was one."""
        with self._database.transaction() as transaction:
            ended = transaction.run("DELETE FROM sessions WHERE sha256 = :key", key=secret_hash(text)) > 0
            if ended:
                record(transaction, actor, "signed out", None, "")
        return ended
