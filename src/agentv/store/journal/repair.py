"""Repair of a run's files: torn lines are cut off, and what was repaired or restored is described for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from agentv.errors import StoreError
from agentv.model.values.formatting import plural
from agentv.store.files.directory import HISTORY, INDEX, JOURNAL, REJECTED
from agentv.store.files.lines import Restored, cut_torn_end, read_lines
from agentv.store.journal.answers import HEADER, VERSION, verified
from agentv.store.rows.reading import key_in

_NAMED = 5
"""Cases that are named if their rows were changed."""


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


def restored_rows(found: Restored) -> str:
    """Description of what was restored in `index.jsonl`."""
    parts = []
    if found.foreign:
        names = dict.fromkeys(key.test_id for line in found.foreign if (key := key_in(line)) is not None)
        listed = ", ".join([*names][:_NAMED]) + (" and others" if len(names) > _NAMED else "")
        whose = f" ({listed})" if names else ""
        parts.append(f"{plural(len(found.foreign), 'line', ',')}{whose} not written by agentv, moved to {REJECTED}")
    if found.lost:
        rows = "1 row is" if found.lost == 1 else f"{found.lost:,} rows are"
        parts.append(f"{rows} lost; --resume grades their trials again from the answers")
    return f"{INDEX} was changed: {'; '.join(parts) or 'its rows are in their place again'}"


def restored_answers(found: Restored) -> str:
    """Description of what was restored in `journal.jsonl`."""
    parts = []
    if found.foreign:
        parts.append(f"{plural(len(found.foreign), 'line', ',')} not written by agentv, removed")
    if found.lost:
        parts.append(f"{plural(found.lost, 'line', ',')} lost; --resume makes these calls again")
    return f"{JOURNAL} was changed: {'; '.join(parts) or 'its lines are in their place again'}"
