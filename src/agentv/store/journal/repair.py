"""Repair of a run's files: torn lines are cut off, and what was repaired is described for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from agentv.errors import StoreError
from agentv.store.files.directory import HISTORY, INDEX, JOURNAL, REJECTED
from agentv.store.files.lines import cut_torn_end, read_lines
from agentv.store.journal.answers import HEADER, VERSION, verified


def cut_torn_lines(run: Path) -> Iterator[str]:
    """Remove incomplete last lines; one sentence for each removed line.

    Raises:
        StoreError: the file is not a journal, or the system refuses.
    """
    for name, is_whole in ((JOURNAL, _is_journal_line), (INDEX, _is_json), (HISTORY, _is_json)):
        cut = cut_torn_end(run / name, is_whole)
        if cut:
            yield f"{run / name}: removed {cut} bytes of an incomplete line"
    for _, line in read_lines(run / JOURNAL):
        if line != HEADER:
            raise StoreError(f"{run / JOURNAL} is not a journal of format {VERSION}")
        return


def _is_journal_line(line: bytes) -> bool:
    return line + b"\n" == HEADER or verified(line) is not None


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def quarantined(rows: int) -> str:
    """Description of rows that were moved to `rejected.jsonl` because their checksum is wrong."""
    if rows == 1:
        return f"{INDEX}: 1 row was changed after it was written: moved to {REJECTED}; its trial is graded again"
    reason = "rows were changed after they were written"
    return f"{INDEX}: {rows:,} {reason}: moved to {REJECTED}; their trials are graded again"
