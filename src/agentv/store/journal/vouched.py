"""Verification of the rows of a stored run against the checksums in its journal.

A row that was edited, or put there, is vouched for by no line. Whoever looks at a run asks before making numbers of it.
"""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from agentv.errors import StoreError
from agentv.store.files.directory import INDEX, JOURNAL
from agentv.store.files.hashes import NumberedHashes
from agentv.store.files.lines import read_lines
from agentv.store.journal.answers import is_seal, seal_in, unsealed
from agentv.store.rows.reading import is_torn, key_of_row


def check_rows(run: Path) -> None:
    """Refuse a run with rows that have no valid checksum in its journal.

    Raises:
        StoreError: it does; the text names the first of them. So too where a file cannot be read.
    """
    if next(read_lines(run / INDEX), None) is None:
        return
    seals = _seals(run / JOURNAL)
    mend = f"agentv eval --resume={run.name} moves such rows away and grades their trials again"
    for number, line in read_lines(run / INDEX):
        row = line.rstrip(b"\n")
        if seals.find(hash((key_of_row(row) or "", crc32(row)))) is None and not is_torn(line):
            if not len(seals):
                what = f"{run / INDEX} contains rows, but {JOURNAL} has no checksum of them"
                raise StoreError(f"{what}: it was removed, emptied or replaced")
            raise StoreError(f"{run / INDEX}:{number}: this row was changed after it was written; {mend}")


def _seals(journal: Path) -> NumberedHashes:
    found = NumberedHashes()
    for _, line in read_lines(journal):
        if is_seal(line) and unsealed(line.rstrip(b"\n")) is not None:
            found.number(hash(seal_in(line)))
    return found
