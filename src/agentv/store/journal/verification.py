"""Verification of the rows and totals of a stored run against the checksums in its journal.

The journal has no checksum of a row that was edited or added. Rows are verified before totals are computed from them.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from agentv.errors import StoreError
from agentv.model.values.hashes import NumberedHashes
from agentv.model.values.values import JsonObject
from agentv.store.files.directory import INDEX, JOURNAL, SUMMARY, DamagedRecordError, document_in
from agentv.store.files.lines import last_lines, read_lines
from agentv.store.files.whole_file import as_store_error
from agentv.store.journal.answers import (
    SummaryChecksum,
    is_row_checksum,
    row_checksum_in,
    summary_checksum_in,
    verified,
)
from agentv.store.rows.reading import is_torn, key_of_row

_TAIL = 1 << 16
"""Bytes at the end of a journal to search for the checksum of `summary.json`, which is written last."""


def check_rows(run: Path) -> None:
    """Raise an error if a run has rows whose checksum is not in its journal.

    Raises:
        StoreError: there is such a row, the first of which the message names, or a file cannot be read.
    """
    if next(read_lines(run / INDEX), None) is None:
        return
    checksums = _checksums(run / JOURNAL)
    repair = f"agentv eval --resume={run.name} moves such rows away and grades their trials again"
    for number, line in read_lines(run / INDEX):
        row = line.rstrip(b"\n")
        if checksums.find(hash((key_of_row(row) or "", crc32(row)))) is None and not is_torn(line):
            if not len(checksums):
                what = f"{run / INDEX} holds rows, and {JOURNAL} has checksums of none of them"
                raise StoreError(f"{what}: it was removed, emptied or replaced")
            raise StoreError(f"{run / INDEX}:{number}: this row was changed after it was written; {repair}")


class StoredSummary(NamedTuple):
    """The `summary.json` of a run.

    Attributes:
        path: path of the file.
        content: content of the file.
        verified: whether agentv wrote it, and the rows still have the same size. False if the journal has no checksum
            of it, or if rows were added or removed since.
    """

    path: Path
    content: bytes
    verified: bool

    @property
    def document(self) -> JsonObject:
        """The object in the file.

        Raises:
            DamagedRecordError: it is not a JSON object.
        """
        return document_in(self.path, self.content)


def stored_summary(run: Path) -> StoredSummary | None:
    """Return the `summary.json` of a run; None if it has none, for example because it was killed.

    Raises:
        DamagedRecordError: it was changed after agentv wrote it.
        StoreError: it cannot be read.
    """
    path = run / SUMMARY
    with as_store_error("read", path):
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
    written = _summary_checksum(run / JOURNAL)
    if written is None:
        return StoredSummary(path, content, verified=False)
    if written.summary != f"{crc32(content):08x}":
        repair = f"agentv eval --resume={run.name} writes it again"
        raise DamagedRecordError(f"{path} was changed after it was written; {repair}")
    return StoredSummary(path, content, verified=_size(run / INDEX) == written.rows_bytes)


def _size(index: Path) -> int:
    """Return the size of the rows in bytes; 0 if the file is missing."""
    with as_store_error("read", index), suppress(FileNotFoundError):
        return index.stat().st_size
    return 0


def _summary_checksum(journal: Path) -> SummaryChecksum | None:
    """Return the last checksum of a summary in a journal; None if rows were written after it."""
    for line in last_lines(journal, _TAIL):
        if (found := summary_checksum_in(line)) is not None:
            return found
        if is_row_checksum(line):
            return None
    return None


def _checksums(journal: Path) -> NumberedHashes:
    found = NumberedHashes()
    for _, line in read_lines(journal):
        if is_row_checksum(line) and verified(line.rstrip(b"\n")) is not None:
            found.number(hash(row_checksum_in(line)))
    return found
