"""Labels of a project, sent to a server and got from it. Both sides only ever add those that they lack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from agentv.extensions.team.push.connection import Connection, PushError
from agentv.model.redaction import Redactor
from agentv.model.run.labels import Label, time_problem
from agentv.reports.text.escaping import one_line
from agentv.store.labels.label_files import (
    label_in,
    label_line,
    labels_directory,
    labels_file,
    merge_labels,
    read_labels_and_ratings,
)

_BATCH = 2 << 20
"""Bytes of labels after which a batch ends."""

_ADDRESS = "labels/lines"


class _Added(Struct):
    added: int


class _Answer(Struct):
    labels: list[msgspec.Raw]
    cursor: int
    more: bool


def push_labels(root: Path, connection: Connection, redactor: Redactor) -> int:
    """Send the labels of a project; how many the server did not have.

    Raises:
        PushError: the server refuses or cannot be reached, or a label contains a secret.
        StoreError: a file of labels cannot be read.
    """
    added = 0
    for batch in _batches(_lines(root, redactor)):
        found: _Added = connection.send("POST", _ADDRESS, {}, b"\n".join(batch), _Added)
        added += found.added
    return added


def pull_labels(root: Path, connection: Connection) -> tuple[int, tuple[Path, ...]]:
    """Append the labels of the server that a project lacks; how many, and the files that they were added to.

    Labels that cannot have been given at their time are left out.

    Raises:
        PushError: the server refuses or cannot be reached, or sends what is no label.
        StoreError: a file cannot be written.
    """
    by_file: dict[Path, list[Label]] = {}
    for label in _of_server(connection):
        if time_problem(label, datetime.now(UTC)) is not None:
            continue  # it could not be pushed again
        by_file.setdefault(labels_file(root, label.suite), []).append(label)
    added = {path: merge_labels(path, labels) for path, labels in sorted(by_file.items())}
    return sum(added.values()), tuple(path for path, count in added.items() if count)


def _lines(root: Path, redactor: Redactor) -> Iterator[bytes]:
    """The labels of a project as lines, each once, in the order of its files."""
    seen: set[bytes] = set()
    for path in sorted(labels_directory(root).glob("*.jsonl")):
        for label in read_labels_and_ratings([path]):
            line = label_line(label)
            problem = time_problem(label, datetime.now(UTC))
            if problem is not None:
                raise PushError(
                    f"{path}: the time '{one_line(label.time[:40])}' of a label of {one_line(label.person)} {problem}: "
                    "delete its line, and label the answer again"
                )
            if redactor.found_in(line):
                raise PushError(
                    f"{path}: a label contains a secret of this environment, so the labels were not pushed: "
                    "remove the secret from its line"
                )
            if line not in seen:
                seen.add(line)
                yield line


def _batches(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The pieces in their order, each batch not much longer than may be sent at once."""
    batch: list[bytes] = []
    size = 0
    for piece in pieces:
        if batch and size + len(piece) > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += len(piece) + 1
    if batch:
        yield batch


def _of_server(connection: Connection) -> Iterator[Label]:
    after, more = 0, True
    while more:
        found: _Answer = connection.get(_ADDRESS, _Answer, {"after": after})
        if found.more and (found.cursor <= after or not found.labels):
            raise PushError("the server sends the same labels again and again: upgrade it")
        after, more = found.cursor, found.more
        for line in found.labels:
            try:
                yield label_in(bytes(line))
            except (ValueError, RecursionError) as error:
                raise PushError(f"the server sent what is no label: {error}") from error
