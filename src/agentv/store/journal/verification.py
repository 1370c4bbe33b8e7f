"""Verification of the rows of a stored run against the checksums in its journal.

The journal holds no checksum of a row that was edited or added. Rows are verified before numbers are made of them.
"""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from agentv.errors import StoreError
from agentv.model.values.hashes import NumberedHashes
from agentv.store.files.directory import INDEX, JOURNAL
from agentv.store.files.lines import read_lines
from agentv.store.journal.answers import is_row_checksum, row_checksum_in, verified
from agentv.store.rows.reading import is_torn, key_of_row


def check_rows(run: Path) -> None:
    """Refuse a run with rows whose checksum is not in its journal.

    Raises:
        StoreError: it has some; the text names the first of them. So too if a file cannot be read.
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


def _checksums(journal: Path) -> NumberedHashes:
    found = NumberedHashes()
    for _, line in read_lines(journal):
        if is_row_checksum(line) and verified(line.rstrip(b"\n")) is not None:
            found.number(hash(row_checksum_in(line)))
    return found
