"""Reading of rows that are appended to a run, and their conversion to trials of the index of cases."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

from msgspec import Struct, field

from agentv.errors import StoreError
from agentv.extensions.view.case_rows import CaseGroup, IndexedTrial
from agentv.extensions.view.pages.entries import state, teaser
from agentv.extensions.view.pages.whole import trial_data
from agentv.model.run.cases import TrialCluster, cluster_of, key_of_cluster, sample_of
from agentv.model.run.trial import TrialResult
from agentv.model.values.hashes import text_hash
from agentv.reports.run.failures import FailureGroups
from agentv.store.files.whole_file import as_store_error
from agentv.store.rows.reading import row_in
from agentv.store.rows.results import result_in
from agentv.store.totals.summary import RunCounts

_NOT_SEARCHED = frozenset({"sha256", "key", "timestamp", "role", "path", "source", "aggregate"})
_SEARCHED = 1_000_000
"""Maximum number of searchable characters per trial."""


def indexed_trial(place: int, result: TrialResult) -> IndexedTrial:
    """A trial for the index; its row begins at `place`, in bytes."""
    trial, case = result.trial, result.trial.case
    row = TrialCluster.of(trial)
    group = CaseGroup(
        trial.suite.name,
        trial.suite.path,
        trial.target.name,
        case.prompt_id,
        trial.variant_name,
        tuple(case.tags),
        trial.threshold,
        trial.repeat,
        trial.aggregate,
        trial.alpha,
        key_of_cluster(row),
    )
    return IndexedTrial(
        place,
        group,
        case.id,
        trial.sample,
        case.sha256[:12],
        sample_of(result),
        round(result.duration_ms, 1),
        result.spent_usd,
        [(score.entry.shown_type, score.entry.name, state(score)) for score in result.scores],
        teaser(result),
        text_hash("\0".join(cluster_of(row))),
        text_hash(f"{trial.suite.path}\0{trial.suite.name}\0{case.id}"),
        case.position,
        "\n".join(_texts(trial_data(result, "")))[:_SEARCHED],
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            if name not in _NOT_SEARCHED:
                yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


_CHECKED = 4096
"""Number of bytes at the beginning of a file, and before a place in it, that the fingerprint covers."""

_READ_AHEAD = 1 << 17


class FileState(NamedTuple):
    """The inode, size and modification time of a file, to detect changes."""

    inode: int
    size: int
    changed_ns: int


def state_of(path: Path) -> FileState | None:
    """The state of a file, or None if it is missing.

    Raises:
        StoreError: the path is not a regular file, but for instance a symbolic link.
    """
    with as_store_error("read", path):
        try:
            found = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"cannot read {path}: it is not a regular file")
    return FileState(found.st_ino, found.st_size, found.st_mtime_ns)


def fingerprint(path: Path, end: int) -> int:
    """A checksum of the beginning of a file and of the bytes before `end`, to recognize the file.

    Raises:
        StoreError: the file cannot be read.
    """
    with as_store_error("read", path), _opened(path) as file:
        head = file.read(min(_CHECKED, end))
        file.seek(max(0, end - _CHECKED))
        return crc32(file.read(min(_CHECKED, end)), crc32(head))


def appended_lines(path: Path, start: int) -> Iterator[tuple[int, bytes]]:
    """The complete lines from a position on, each with its start, in bytes. An incomplete last line is left out.

    Raises:
        StoreError: the file cannot be read.
    """
    with as_store_error("read", path), suppress(FileNotFoundError), _opened(path) as file:
        file.seek(start)
        place = start
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield place, line
            place += len(line)


def _opened(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    return open(descriptor, "rb", buffering=_READ_AHEAD)  # noqa: PTH123  # a descriptor has no path


_BATCH_S = 0.1
"""Seconds for which rows are read before requests get their turn."""

_BATCH_BYTES = 16_000_000

TOTALLED = 200_000
"""Maximum number of trials for which totals are computed while a run is in progress."""


class Collected(Struct):
    """Results computed from rows in addition to the index.

    Attributes:
        failures: failures by cause; None if rows were replaced, so that they must be read again.
        counts: totals; None if there are too many rows, or if not all were read by this process.
    """

    failures: FailureGroups | None = field(default_factory=FailureGroups)
    counts: RunCounts | None = field(default_factory=RunCounts)

    def add(self, result: TrialResult, number: int, line: bytes) -> None:
        """Add a row."""
        if self.failures is not None:
            self.failures.add(result, number)
        if self.counts is not None and number > TOTALLED:
            self.counts = None
        if self.counts is not None:
            self.counts.add(row_in(line))


class Batch(Struct, frozen=True):
    """A batch of trials that were read.

    Attributes:
        end: start of the next row, in bytes.
        more: whether more rows follow.
        problem: error message for the first line that is not a row; "" if all are.
    """

    trials: list[IndexedTrial]
    end: int
    more: bool = False
    problem: str = ""


def read_batch(file: Path, root: str, start: int, first: int, collected: Collected) -> Batch:
    """A batch of trials from the next rows of a file, limited in time and size.

    Lines that are not rows are skipped and reported.

    Args:
        file: path of the `index.jsonl`.
        root: directory that paths in rows are relative to.
        start: where to begin, in bytes.
        first: number of the first trial.
        collected: results to which the rows are added.

    Raises:
        StoreError: the file cannot be read, or has a row of a newer version.
    """
    until = time.monotonic() + _BATCH_S
    trials: list[IndexedTrial] = []
    end, problem = start, ""
    for place, line in appended_lines(file, start):
        if end > start and (time.monotonic() > until or place - start > _BATCH_BYTES):
            return Batch(trials, end, more=True, problem=problem)
        end = place + len(line)
        if line.isspace():
            continue
        try:
            result = result_in(line, root)
            collected.add(result, first + len(trials), line)
        except ValueError as error:
            problem = problem or f"{file.name}: no row of a run starts at byte {place}: {error}"
            continue
        except StoreError as error:
            raise StoreError(f"{file}: {error}") from error
        trials.append(indexed_trial(place, result))
    return Batch(trials, end, problem=problem)
