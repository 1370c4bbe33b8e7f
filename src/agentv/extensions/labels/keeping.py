"""Where labels are kept: in the files of a project, or in what a server has in their place."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from agentv.errors import StoreError
from agentv.model.run.labelled.labels import Label, person_key
from agentv.store.files.encoding import to_json
from agentv.store.files.lines import read_lines
from agentv.store.labels.label_files import (
    append_labels,
    append_line,
    labels_directory,
    labels_file,
    read_labels,
    read_labels_and_ratings,
)


class LabelStore(Protocol):
    """The labels of a project. Labels are added, never changed: the latest of a person counts."""

    def read(self, suites: Collection[str] | None = None) -> list[Label]:
        """The labels of these suites, or of all, in the order in which they were added.

        Raises:
            StoreError: they cannot be read.
        """

    def ratings(self, suites: Collection[str]) -> list[Label]:
        """The ratings of whole answers of these suites, in the order in which they were added.

        Raises:
            StoreError: they cannot be read.
        """

    def add(self, labels: Sequence[Label]) -> None:
        """Add labels or ratings; they are durable when this returns.

        Raises:
            StoreError: they cannot be kept; none of them counts then.
        """

    def places(self, suites: Collection[str]) -> list[str]:
        """Where the labels of these suites lie, for messages."""

    def mark_shown(self, run: str, person: str, answers: Sequence[str]) -> None:
        """A person is about to see how often they and the judge agree on answers; that is durable when this returns.

        Raises:
            StoreError: it cannot be kept.
        """

    def shown(self, run: str, person: str) -> Collection[str]:
        """The answers of a run on which a person has seen that.

        Raises:
            StoreError: it cannot be read.
        """


class LabelFiles:
    """The labels of a project in `.agentv/labels/SUITE.jsonl`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, suites: Collection[str] | None = None) -> list[Label]:
        """As `LabelStore.read`. Suites whose names differ only in signs share a file."""
        if suites is None:
            return read_labels(sorted(labels_directory(self._root).glob("*.jsonl")))
        return read_labels(self.files(suites))

    def ratings(self, suites: Collection[str]) -> list[Label]:
        """As `LabelStore.ratings`."""
        found = read_labels_and_ratings(self.files(suites))
        return [one for one in found if one.is_rating and one.suite in suites]

    def add(self, labels: Sequence[Label]) -> None:
        """As `LabelStore.add`."""
        by_file: dict[Path, list[Label]] = {}
        for label in labels:
            by_file.setdefault(labels_file(self._root, label.suite), []).append(label)
        for file, found in sorted(by_file.items()):
            append_labels(file, found)

    def places(self, suites: Collection[str]) -> list[str]:
        """As `LabelStore.places`."""
        return list(map(str, self.files(suites)))

    def mark_shown(self, run: str, person: str, answers: Sequence[str]) -> None:
        """As `LabelStore.mark_shown`."""
        before = self.shown(run, person)
        new = [one for one in answers if one not in before]
        if new:
            append_agreement(self._root, run, person, new)

    def shown(self, run: str, person: str) -> Collection[str]:
        """As `LabelStore.shown`."""
        return read_shown_answers(self._root, run, person)

    def files(self, suites: Collection[str]) -> list[Path]:
        """The files of these suites; not all of them need exist."""
        return sorted({labels_file(self._root, one) for one in suites})


_SHOWN = "shown"


class _AgreementLine(Struct, forbid_unknown_fields=True):
    run: str
    person: str
    time: str
    answers: list[str]


_decode = msgspec.json.Decoder(_AgreementLine).decode


def agreements_file(root: Path, run: str) -> Path:
    """The file of a run's agreements that were shown."""
    name = re.sub(r"[^\w.-]+", "-", run).strip("-.") or "run"
    return labels_directory(root) / _SHOWN / f"{name}.jsonl"


def append_agreement(root: Path, run: str, person: str, answers: list[str]) -> None:
    """Add that a person was shown how often they and the judge agree on these answers; the disk has it on return.

    Raises:
        StoreError: the system refuses.
    """
    line = _AgreementLine(run, person, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), answers)
    append_line(agreements_file(root, run), to_json(line))


def read_shown_answers(root: Path, run: str, person: str) -> set[str]:
    """The answers of a run on which a person was shown the agreement.

    Raises:
        StoreError: the file cannot be read, or has a line that is none of them; the text names it.
    """
    path, wanted = agreements_file(root, run), person_key(person)
    found: set[str] = set()
    for number, line in read_lines(path) if path.exists() else ():
        if not line.strip():
            continue
        try:
            read = _decode(line)
        except ValueError as error:
            raise StoreError(f"{path}:{number}: not a shown agreement: {error}") from error
        if read.run == run and person_key(read.person) == wanted:
            found.update(read.answers)
    return found
