"""Labels of a project in the shared database: each line once, in the order of arrival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from agentv.errors import StoreError
from agentv.extensions.team.label_groups import GroupHash, LabelGroup, group_hash, group_of, label_id
from agentv.extensions.team.store.audit import record as audit
from agentv.extensions.team.store.database import Database, Transaction, now
from agentv.model.run.labelled.labels import Label, person_key, time_problem
from agentv.model.values.formatting import plural
from agentv.store.labels.label_files import label_in, label_line, labels_file

LARGEST_LABEL = 64 << 10
"""Bytes of one label."""

_LONGEST_NAME = 255
"""Bytes of the name of a file."""


class LabelRefusedError(StoreError):
    """A label that is wrong in itself."""


NumberedLine = tuple[int, bytes]
"""The number of a label, and its line without an end."""


class TeamLabels:
    """The labels of one project, as one person or program reads and adds them; a `LabelStore`.

    Args:
        database: of the server.
        project: that exists.
        actor: who adds labels, for the audit log.
    """

    def __init__(self, database: Database, project: str, actor: str) -> None:
        self._database = database
        self._project = project
        self._actor = actor

    def read(self, suites: Collection[str] | None = None) -> list[Label]:
        """The labels of these suites, or of all, in the order of their arrival; no ratings."""
        return [one for one in self.read_all(suites) if not one.is_rating]

    def ratings(self, suites: Collection[str]) -> list[Label]:
        """The ratings of whole answers of these suites, in the order of their arrival."""
        return [one for one in self.read_all(suites) if one.is_rating]

    def read_all(self, suites: Collection[str] | None = None) -> list[Label]:
        """Labels and ratings, in the order of their arrival."""
        with self._database.reading() as transaction:
            found = transaction.rows(
                "SELECT suite, line FROM labels WHERE project = :project ORDER BY number", project=self._project
            )
        return [label_in(line) for suite, line in found if suites is None or suite in suites]

    def add(self, labels: Sequence[Label]) -> None:
        """Add labels; those that are there already change nothing.

        Raises:
            LabelRefusedError: a label is too large, or its suite can have no file.
        """
        self.merge(labels)

    def merge(self, labels: Sequence[Label]) -> int:
        """Add the labels that are missing; how many.

        Raises:
            LabelRefusedError: as `add`; then none is added.
        """
        by_id = {label_id(line): (label, line) for label in labels for line in [_checked_line(label)]}
        if not by_id:
            return 0
        with self._database.transaction() as transaction:
            transaction.lock(f"labels {self._project}")
            new = self._unknown(transaction, by_id)
            if not new:
                return 0
            query = "SELECT COALESCE(MAX(number), 0) FROM labels WHERE project = :project"
            ((last,),) = transaction.rows(query, project=self._project)
            transaction.insert(
                "labels",
                ("project", "id", "number", "suite", "person", "time", "actor", "line"),
                (
                    (self._project, one, number, label.suite, label.person, label.time, self._actor, line)
                    for number, one in enumerate(new, last + 1)
                    for label, line in [by_id[one]]
                ),
            )
            for suite, count in sorted(Counter(by_id[one][0].suite for one in new).items()):
                audit(transaction, self._actor, "labels added", self._project, f"{suite}: {count}")
            transaction.notify()
        return len(new)

    def differing(self, groups: Sequence[GroupHash]) -> list[int]:
        """Which of these groups has other labels here, by their places in the sequence."""
        known: dict[LabelGroup, list[str]] = {}
        with self._database.reading() as transaction:
            for suite in dict.fromkeys(one.suite for one in groups):
                query = "SELECT person, time, id FROM labels WHERE project = :project AND suite = :suite"
                for person, time, one in transaction.rows(query, project=self._project, suite=suite):
                    known.setdefault(group_of(suite, person, time), []).append(one)
        hashes = [group_hash(known.get((one.suite, one.person, one.day), ())) for one in groups]
        return [place for place, one in enumerate(groups) if one.sha256 != hashes[place]]

    def missing(self, ids: Sequence[str]) -> list[str]:
        """The ids of labels that are not here, in their order."""
        if not ids:
            return []
        with self._database.reading() as transaction:
            return self._unknown(transaction, ids)

    def places(self, suites: Collection[str]) -> list[str]:  # noqa: ARG002  # all suites lie in one place
        """Where the labels lie, for messages."""
        return [f"the server's labels of {self._project}"]

    def mark_shown(self, run: str, person: str, answers: Sequence[str]) -> None:
        """A person is about to see how often they and the judge agree on answers of a run."""
        with self._database.transaction() as transaction:
            before = self._shown(transaction, run, person)
            new = [one for one in dict.fromkeys(answers) if one not in before]
            if not new:
                return
            transaction.run_many(
                "INSERT INTO agreements (project, run, person, answer, time) "
                "VALUES (:project, :run, :person, :answer, :time) "
                "ON CONFLICT (project, run, person, answer) DO NOTHING",
                (
                    {"project": self._project, "run": run, "person": person_key(person), "answer": one, "time": now()}
                    for one in new
                ),
            )
            audit(transaction, self._actor, "agreement shown", self._project, f"{run}: {plural(len(new), 'answer')}")

    def shown(self, run: str, person: str) -> Collection[str]:
        """The answers of a run on which a person has seen that."""
        with self._database.reading() as transaction:
            return self._shown(transaction, run, person)

    def _shown(self, transaction: Transaction, run: str, person: str) -> set[str]:
        found = transaction.rows(
            "SELECT answer FROM agreements WHERE project = :project AND run = :run AND person = :person",
            project=self._project,
            run=run,
            person=person_key(person),
        )
        return {one for (one,) in found}

    def lines(self, after: int, limit: int) -> list[NumberedLine]:
        """The lines behind a number, in the order of arrival."""
        with self._database.reading() as transaction:
            return [
                (number, line)
                for number, line in transaction.rows(
                    "SELECT number, line FROM labels WHERE project = :project AND number > :after "
                    "ORDER BY number LIMIT :limit",
                    project=self._project,
                    after=after,
                    limit=limit,
                )
            ]

    def _unknown(self, transaction: Transaction, ids: Collection[str]) -> list[str]:
        """Those of the ids that are not there."""
        if len(ids) == 1:
            query = "SELECT id FROM labels WHERE project = :project AND id = :id"
            known = transaction.rows(query, project=self._project, id=next(iter(ids)))
        else:
            known = transaction.rows("SELECT id FROM labels WHERE project = :project", project=self._project)
        before = {one for (one,) in known}
        return [one for one in ids if one not in before]


def _checked_line(label: Label) -> bytes:
    """The line of a label.

    Raises:
        LabelRefusedError: it cannot be kept.
    """
    try:
        line = label_line(label)
        label_in(line)
        length = len(labels_file(Path(), label.suite).name.encode())
    except ValueError as error:
        raise LabelRefusedError(f"this is no label: {error}") from error
    problem = time_problem(label, datetime.now(UTC))
    if problem is not None:
        raise LabelRefusedError(f"the time '{label.time[:40]}' of a label {problem}; label the answer again")
    if len(line) > LARGEST_LABEL:
        raise LabelRefusedError(f"a label may have {LARGEST_LABEL >> 10} KB at most")
    if length > _LONGEST_NAME:
        raise LabelRefusedError("the name of the label's suite is too long")
    if any("\0" in text for text in (label.suite, label.person, label.time)):
        raise LabelRefusedError("a label must not contain NUL characters")
    return line
