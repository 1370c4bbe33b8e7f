"""What the agent of a trial did and changed, read from the artifacts of its run for the page of the trial."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from agentv.errors import StoreError
from agentv.extensions.view.pages.work import ShownDiff, ShownWork
from agentv.model.run.trial import TrialResult
from agentv.model.values.response import Failure
from agentv.store.files.artifact import artifact

MOST_LINES = 5000
"""Lines of a diff that a page holds."""

MOST_BYTES = 1_000_000
"""Bytes of a diff that a page holds."""


def shown_work(directory: Path, result: TrialResult) -> ShownWork | None:
    """The work of a trial; None where its row names no artifact.

    Args:
        directory: of the run, which the paths in rows count from.
        result: of the trial.
    """
    stored = result.stored
    if stored is None or (stored.trace_path is None and stored.diff_path is None):
        return None
    from agentv.store.files.traces import read

    work, problems = ShownWork(), []
    if stored.trace_path is not None:
        path = artifact(directory, stored.trace_path)
        trace = read(path) if isinstance(path, Path) else path
        if isinstance(trace, Failure):
            problems.append(f"{stored.trace_path}: {trace.message}")
        else:
            work = ShownWork(trace, stored.trace_path)
    diff: ShownDiff | None = None
    if stored.diff_path is not None:
        try:
            diff = _diff(directory, stored.diff_path)
        except (OSError, StoreError) as error:
            problems.append(f"{stored.diff_path}: {error}")
    return ShownWork(work.trace, work.trace_path, diff, "; ".join(problems))


def _diff(directory: Path, named: str) -> ShownDiff:
    """The first lines of a diff; a line that is too long ends it.

    Raises:
        OSError, StoreError: it cannot be read.
    """
    path = artifact(directory, named)
    if isinstance(path, Failure):
        raise StoreError(path.message)
    kept: list[bytes] = []
    size = 0
    with path.open("rb") as file:
        for line in islice(iter(lambda: file.readline(MOST_BYTES), b""), MOST_LINES):
            size += len(line)
            if size > MOST_BYTES:
                break
            kept.append(line)
        file.seek(0)
        total = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
    text = b"".join(kept).decode("utf-8", "replace")
    return ShownDiff(text, len(kept), max(total, len(kept)), named)
