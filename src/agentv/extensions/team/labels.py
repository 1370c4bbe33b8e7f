"""Labels of a project in the shared database, without duplicates and in order of arrival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from agentv.extensions.team.database import Database, insert
from agentv.extensions.team.database import record as audit
from agentv.extensions.team.uploaded import LONGEST_FILE_NAME, UploadRefusedError
from agentv.model.run.labels import Label, time_problem
from agentv.store.labels import label_in, label_line, labels_file

LARGEST_LABEL = 64 << 10
"""Most bytes of a label."""


class TeamLabels(Struct, frozen=True):
    """The labels of a project, as read and added by one person or program. A `LabelStore`.

    Args:
        database: database of the server.
        project: an existing project.
        actor: who adds labels, for the audit log.
    """

    _database: Database
    _project: str
    _actor: str

    def read(self, suites: Collection[str] | None = None) -> list[Label]:
        """Return the labels of these suites, or of all, in order of arrival, without ratings."""
        return [one for one in self.read_all(suites) if not one.is_rating]

    def ratings(self, suites: Collection[str]) -> list[Label]:
        """Return the ratings of whole answers of these suites, in order of arrival."""
        return [one for one in self.read_all(suites) if one.is_rating]

    def read_all(self, suites: Collection[str] | None = None) -> list[Label]:
        """Return labels and ratings, in order of arrival."""
        return [label_in(line) for suite, line in self.lines() if suites is None or suite in suites]

    def lines(self) -> list[tuple[str, bytes]]:
        """Return the suite and the line of each label, in order of arrival; lines have no line end."""
        query = "SELECT suite, line FROM labels WHERE project = :project ORDER BY number"
        with self._database.reading() as transaction:
            return [(suite, line) for suite, line in transaction.rows(query, project=self._project)]

    def add(self, labels: Sequence[Label]) -> None:
        """Add labels, ignoring existing ones.

        Raises:
            UploadRefusedError: a label is invalid or too large, or the name of its suite is too long.
        """
        self.merge(labels)

    def merge(self, labels: Sequence[Label]) -> int:
        """Add the labels that do not exist yet, and return their number.

        Raises:
            UploadRefusedError: as `add`; no label is added then.
        """
        by_id = {sha256(line).hexdigest(): (label, line) for label in labels for line in [_checked_line(label)]}
        if not by_id:
            return 0
        with self._database.transaction() as transaction:
            transaction.lock(f"labels {self._project}")
            query = "SELECT COALESCE(MAX(number), 0) FROM labels WHERE project = :project"
            ((last,),) = transaction.rows(query, project=self._project)
            added: Counter[str] = Counter()
            for one, (label, line) in by_id.items():
                of_label = {"project": self._project, "suite": label.suite, "person": label.person, "time": label.time}
                kept = {"id": one, "number": last + added.total() + 1, "actor": self._actor, "line": line}
                added[label.suite] += insert(transaction, "labels", or_nothing=True, **of_label, **kept)
            for suite, count in sorted((+added).items()):
                audit(transaction, self._actor, "labels added", self._project, f"{suite}: {count}")
        return added.total()

    def places(self, suites: Collection[str]) -> list[str]:  # noqa: ARG002  # all suites are stored together
        """Return where the labels are stored, for messages."""
        return [f"the server's labels of {self._project}"]


def _checked_line(label: Label) -> bytes:
    """Return a label as a line.

    Raises:
        UploadRefusedError: it cannot be stored.
    """
    try:
        line = label_line(label)
        label_in(line)
        length = len(labels_file(Path(), label.suite).name.encode())
    except ValueError as error:
        raise UploadRefusedError(f"this is no label: {error}") from error
    problem = time_problem(label, datetime.now(UTC))
    if problem is not None:
        raise UploadRefusedError(f"the time '{label.time[:40]}' of a label {problem}; label the answer again")
    if len(line) > LARGEST_LABEL:
        raise UploadRefusedError(f"a label may have {LARGEST_LABEL >> 10} KB at most")
    if length > LONGEST_FILE_NAME or any("\0" in text for text in (label.suite, label.person, label.time)):
        raise UploadRefusedError("the name of the label's suite is too long, or the label has NUL characters")
    return line
