"""An index is kept beside the rows of its run, so that no later start reads them again."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agentv.extensions.view.index.case_index import CaseIndex
from agentv.extensions.view.viewed.appended import FileState
from agentv.extensions.view.viewed.rates import save_facts
from agentv.reports.run.failures import FailureGroup, FailureGroups
from agentv.reports.run.trial_view import TrialView
from agentv.store.files.directory import VIEWED
from agentv.store.rows.ordering import FileOrder

_ROWS_FILE = "rows file"
"""What an index keeps of the file that it was made of."""

_PROBLEM = "problem"


def kept_index(run: Path, state: FileState | None, order: FileOrder) -> tuple[CaseIndex, str] | None:
    """The index beside the rows, and why some of them are left out of it; None: none is of these rows.

    An index that somebody changed is not used.
    """
    found = CaseIndex.open(run / VIEWED, order)
    if found is None or state is None:
        return None
    with suppress(sqlite3.Error):
        if _fits(state, found.saved(_ROWS_FILE)):
            return found, (found.saved(_PROBLEM) or b"").decode()
    found.close()
    return None


def finish(index: CaseIndex, state: FileState, problem: str, failures: FailureGroups | None) -> None:
    """Add to an index what it is kept with, and seal it.

    Args:
        index: writable.
        state: of the file of rows.
        problem: why some of them are left out; empty: none is.
        failures: by cause; None: not all rows are read yet.
    """
    if failures is not None:
        index.save(_failures_name(index), msgspec.json.encode([_saved(one) for one in failures.groups()]))
        save_facts(index)
    index.save(_ROWS_FILE, _stamp(state))
    index.save(_PROBLEM, problem.encode(errors="replace"))
    index.seal()


def put_beside_rows(index: Path, run: Path) -> bool:
    """Copy an index to the directory of its run; whether that could be done."""
    new = run / f".{VIEWED}.{os.getpid()}.new"
    try:
        shutil.copyfile(index, new)
        new.chmod(0o600)
        new.replace(run / VIEWED)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        return False
    return True


def kept_failures(index: CaseIndex) -> list[FailureGroup] | None:
    """The failures by cause that an index keeps, without their examples; None: it keeps none of its rows yet."""
    saved = index.saved(_failures_name(index))
    return None if saved is None else _groups(saved)


_groups = msgspec.json.Decoder(list[FailureGroup]).decode
_NO_VIEW = TrialView("noted", "", "", "", ("", 0), 1, 1, "failed", None, 0.0, None, ())
"""Stands for the view of a group's first trial, which no page shows."""


def _saved(group: FailureGroup) -> FailureGroup:
    return replace(group, example=_NO_VIEW, numbers=list(group.numbers))


def _failures_name(index: CaseIndex) -> str:
    return f"failures {index.read.next_trial}"


def _stamp(state: FileState) -> bytes:
    return f"{state.size:x}-{state.changed_ns:x}".encode()


def _fits(found: FileState, kept: bytes | None) -> bool:
    """Whether an index was kept of this file, or of one that was only appended to since."""
    return kept is not None and (kept == _stamp(found) or not kept.startswith(b"%x-" % found.size))
