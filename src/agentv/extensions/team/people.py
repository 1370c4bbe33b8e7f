"""Access control: projects, API tokens, members, and sessions of people who signed in.

A token is 256 random bits, of which the database stores only a hash.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import asdict

from agentv.errors import UsageError
from agentv.extensions.team.database import Database, Transaction, insert, now, record, sortable_id, time_text

Scope = Literal["read", "push", "label", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

PREFIX = "agentv_"
"""Prefix of every token, by which secret scanners recognize one."""

_PROJECT = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")


class Token(Struct, frozen=True):
    """A stored API token, without its text.

    Attributes:
        id: id by which commands and the audit log name it.
        project: its project; null: every project.
        expires: time of expiry; null: never.
        revoked: time of revocation; null: not revoked.
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
        """Why the token is not accepted, or None."""
        if self.revoked is not None:
            return "the token was revoked"
        if self.expires is not None and self.expires <= now():
            return f"the token expired at {self.expires}"
        return None

    @property
    def actor(self) -> str:
        """Name of the token in the audit log."""
        return f"{self.id} ({self.name})"


class Tokens(Struct, frozen=True):
    """The projects and tokens in a database."""

    _database: Database

    def projects(self) -> list[str]:
        """Return the names of all projects, sorted."""
        with self._database.reading() as transaction:
            return [name for (name,) in transaction.rows("SELECT name FROM projects ORDER BY name")]

    def create(
        self, name: str, project: str | None, scopes: Collection[Scope], days: int | None, actor: str
    ) -> tuple[str, Token]:
        """Create a token, and its project if that is missing.

        Returns:
            The text of the token, which is stored nowhere, and the stored token.

        Raises:
            UsageError: the name of the project is invalid.
        """
        text = PREFIX + token_urlsafe(32)
        created = datetime.now(UTC)
        expires = None if days is None else time_text(created + timedelta(days=days))
        ordered = tuple(scope for scope in SCOPES if scope in scopes)
        made = Token(token_hex(4), name, project, ordered, time_text(created), expires, None)
        with self._database.transaction() as transaction:
            if project is not None:
                create_project(transaction, project, actor)
            columns = {**asdict(made), "scopes": " ".join(ordered), "sha256": secret_hash(text)}
            insert(transaction, "tokens", **columns)
            record(transaction, actor, "token created", project, f"{made.actor}: {' '.join(ordered)}")
        return text, made

    def find(self, text: str) -> Token | None:
        """Return the token with a text, valid or not, or None."""
        return next(iter(self._read("WHERE sha256 = :sha256", sha256=secret_hash(text))), None)

    def by_id(self, token_id: str) -> Token | None:
        """Return the token with an id, valid or not, or None."""
        return next(iter(self._read("WHERE id = :id", id=token_id)), None)

    def all(self) -> list[Token]:
        """Return all tokens, including invalid ones, in order of creation."""
        return self._read("ORDER BY created, id")

    def _read(self, which: str, **values: str) -> list[Token]:
        query = f"SELECT id, name, project, scopes, created, expires, revoked FROM tokens {which}"  # noqa: S608  # constants
        with self._database.reading() as transaction:
            found = transaction.rows(query, **values)
        return [Token(one, name, project, tuple(held.split()), *times) for one, name, project, held, *times in found]

    def revoke(self, token_id: str, actor: str) -> bool:
        """Revoke a token, and return whether it was not revoked before."""
        with self._database.transaction() as transaction:
            statement = "UPDATE tokens SET revoked = :now WHERE id = :id AND revoked IS NULL"
            changed = transaction.run(statement, now=now(), id=token_id)
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
        message = "the name of a project must be 1 to 64 lower-case letters, digits, '-', '_' or '.'"
        raise UsageError(message, "and begin and end with a letter or a digit")
    if name.startswith("team.sqlite"):
        raise UsageError("a project cannot be called like the server's database file", "choose another name")
    if insert(transaction, "projects", or_nothing=True, name=name, created=now()):
        record(transaction, actor, "project created", name, name)


def secret_hash(text: str) -> str:
    """Return the stored hash of a secret. SHA-256 is enough for 256 random bits, which cannot be guessed."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


_EMAIL = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9-]+(\.[a-z0-9-]+)*")
"""ASCII only, since letters of other alphabets can look the same, and may have several lower-case forms."""

_LONGEST_EMAIL = 254
_LONGEST_SUBJECT = 255


class Person(Struct, frozen=True):
    """A person who signed in with an OpenID provider.

    Attributes:
        issuer: address of the provider.
        subject: permanent id of the person at the provider.
        email: email address verified by the provider, in lower case; empty if none exists.
    """

    issuer: str
    subject: str
    email: str = ""

    @property
    def actor(self) -> str:
        """Name of the person in the audit log and in labels."""
        return self.email or f"{self.subject} ({self.issuer})"


class MemberName(Struct, frozen=True):
    """The name of a member.

    Attributes:
        person: an email address in lower case, or a subject.
        issuer: provider of the subject; empty if the person is an email address.
    """

    person: str
    issuer: str = ""

    @property
    def text(self) -> str:
        """The name as shown in the audit log and in lists."""
        return f"{self.person} ({self.issuer})" if self.issuer else self.person


class Member(Struct, frozen=True):
    """A person's scopes in one project.

    Attributes:
        project: null: every project.
    """

    name: MemberName
    project: str | None
    scopes: tuple[Scope, ...]
    added: str


def email_in_lower_case(text: str) -> str | None:
    """Return an email address in the form in which members are compared, or None if no member can have it."""
    lowered = text.lower() if text.isascii() else ""
    return lowered if len(lowered) <= _LONGEST_EMAIL and _EMAIL.fullmatch(lowered) else None


def member_name(text: str, issuer: str | None) -> MemberName:
    """Parse the name of a member, as written by an administrator.

    Raises:
        UsageError: it is not a valid name.
    """
    if issuer is not None:
        if not 0 < len(text) <= _LONGEST_SUBJECT or not text.isprintable():
            raise UsageError("a subject has 1 to 255 printable characters")
        return MemberName(text, issuer)
    email = email_in_lower_case(text)
    if email is None:
        hint = "write NAME@DOMAIN in ASCII; name others by their subject: add --issuer URL"
        raise UsageError(f"'{text}' is not an email address that a member can have", hint)
    return MemberName(email)


class Members(Struct, frozen=True):
    """The members in a database."""

    _database: Database

    def add(self, name: MemberName, project: str | None, scopes: Collection[Scope], actor: str) -> None:
        """Set a person's scopes in a project, which is created if it is missing.

        Raises:
            UsageError: the name of the project is invalid.
        """
        ordered = " ".join(scope for scope in SCOPES if scope in scopes)
        with self._database.transaction() as transaction:
            transaction.lock("agentv-members")
            if project is not None:
                create_project(transaction, project, actor)
            of_one = {**asdict(name), "project": project}
            _delete(transaction, name, project)
            insert(transaction, "members", id=sortable_id(), **of_one, scopes=ordered, added=now())
            record(transaction, actor, "member added", project, f"{name.text}: {ordered}")

    def remove(self, name: MemberName, project: str | None, actor: str) -> bool:
        """Remove a person from a project, or from all if None, and return whether they were a member."""
        with self._database.transaction() as transaction:
            transaction.lock("agentv-members")
            held = [one.project for one in _members(transaction) if one.name == name]
            ended = held if project is None else [one for one in held if one == project]
            for one in ended:
                _delete(transaction, name, one)
                record(transaction, actor, "member removed", one, name.text)
        return bool(ended)

    def all(self) -> list[Member]:
        """Return all members, sorted by name and project."""
        with self._database.reading() as transaction:
            return _members(transaction)

    def scopes(self, person: Person) -> Mapping[str | None, frozenset[Scope]]:
        """Return a person's scopes by project, None being every project; empty if the person is not a member."""
        query = (
            "SELECT project, scopes FROM members WHERE person = :subject AND issuer = :issuer "
            "OR person = :email AND issuer = ''"
        )
        with self._database.reading() as transaction:
            found = transaction.rows(query, **asdict(person))
        held: dict[str | None, frozenset[Scope]] = {}
        for project, scopes in found:
            held[project] = held.get(project, frozenset()) | frozenset(scopes.split())
        return held


def _delete(transaction: Transaction, name: MemberName, project: str | None) -> None:
    statement = (
        "DELETE FROM members WHERE person = :person AND issuer = :issuer "
        "AND (project = :project OR project IS NULL AND CAST(:project AS TEXT) IS NULL)"
    )
    transaction.run(statement, **asdict(name), project=project)


def _members(transaction: Transaction) -> list[Member]:
    found = transaction.rows("SELECT person, issuer, project, scopes, added FROM members")
    made = [
        Member(MemberName(person, issuer), project, tuple(scopes.split()), added)
        for person, issuer, project, scopes, added in found
    ]
    return sorted(made, key=lambda one: (one.name.person, one.name.issuer, one.project or ""))


LONGEST = timedelta(days=7)
"""Longest duration of a session."""


class Session(Struct, frozen=True):
    """The session of a person, or of an API token, in a browser.

    Attributes:
        token: id of the API token that was exchanged for the session; None if a provider signed in `person`.
    """

    token: str | None
    person: Person


class Sessions(Struct, frozen=True):
    """The sessions in a database.

    Args:
        database: database of the server.
        clock: returns the current time.
    """

    _database: Database
    _clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def begin(self, signed_in: Person | Token) -> str:
        """Start a session, and return its text for the browser's cookie."""
        text, moment = token_urlsafe(32), self._clock()
        token, person = (None, signed_in) if isinstance(signed_in, Person) else (signed_in.id, Person("", ""))
        with self._database.transaction() as transaction:
            begun = time_text(moment)
            transaction.run("DELETE FROM sessions WHERE expires <= :now", now=begun)
            times = {"created": begun, "expires": time_text(moment + LONGEST)}
            columns: dict[str, Any] = {"sha256": secret_hash(text), "token": token, **asdict(person), **times}
            insert(transaction, "sessions", **columns)
            record(transaction, signed_in.actor, "signed in", None, person.issuer or "with the token")
        return text

    def find(self, text: str) -> Session | None:
        """Return the session with a text, or None if it does not exist or has expired."""
        query = "SELECT token, issuer, subject, email FROM sessions WHERE sha256 = :key AND expires > :now"
        with self._database.reading() as transaction:
            found = transaction.rows(query, key=secret_hash(text), now=time_text(self._clock()))
        if not found:
            return None
        token, *person = found[0]
        return Session(token, Person(*person))

    def end(self, text: str, actor: str) -> bool:
        """End a session, and return whether it existed."""
        with self._database.transaction() as transaction:
            ended = transaction.run("DELETE FROM sessions WHERE sha256 = :key", key=secret_hash(text)) > 0
            if ended:
                record(transaction, actor, "signed out", None, "")
        return ended
