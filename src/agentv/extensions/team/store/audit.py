"""The audit log: one line for every change, written in the transaction of the change."""

from __future__ import annotations

from msgspec import Struct

from agentv.extensions.team.store.database import Database, Transaction, now, sortable_id

_LONGEST = 500
"""Letters of a detail that are kept."""


class AuditLine(Struct, frozen=True):
    """One change.

    Attributes:
        actor: who made it: the id and the name of a token, or `command line`.
        project: where; null: everywhere.
    """

    id: str
    time: str
    actor: str
    action: str
    project: str | None
    detail: str


def record(transaction: Transaction, actor: str, action: str, project: str | None, detail: str) -> None:
    """Write a line, and let every server know that something has changed."""
    transaction.run("UPDATE changes SET number = number + 1")
    transaction.run(
        "INSERT INTO audit (id, time, actor, action, project, detail) "
        "VALUES (:id, :time, :actor, :action, :project, :detail)",
        id=sortable_id(),
        time=now(),
        actor=actor,
        action=action,
        project=project,
        detail=detail[:_LONGEST],
    )


def audit_lines(
    database: Database, project: str, *, shared: bool = True, before: str = "", limit: int = 100
) -> list[AuditLine]:
    """The lines of a project, newest first.

    Args:
        database: of the server.
        project: its name.
        shared: also lines that belong to no project: sign-ins, members, tokens for all projects.
        before: the id of a line; only lines before that one.
        limit: of lines.
    """
    with database.reading() as transaction:
        found = transaction.rows(
            "SELECT id, time, actor, action, project, detail FROM audit "
            "WHERE (project = :project OR project IS NULL AND :shared) AND (:before = '' OR id < :before) "
            "ORDER BY id DESC LIMIT :limit",
            project=project,
            shared=shared,
            before=before,
            limit=limit,
        )
    return [AuditLine(*row) for row in found]
