"""Stored runs, found by id, directory, or `last`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agentv.app.results.place import RESULTS, project_with, runs_in
from agentv.authoring.source.files import repository_root, shown
from agentv.errors import StoreError, UsageError
from agentv.model.run.labels import ReadLabels
from agentv.model.run.row import Row
from agentv.model.run.trial import TrialResult
from agentv.model.values.values import JsonObject
from agentv.store.files.directory import (
    INDEX,
    RUN,
    SUMMARY,
    holds_run,
    is_being_written,
    missing_record_message,
    read_document,
    results_directory,
)
from agentv.store.journal.verification import check_rows, stored_summary
from agentv.store.rows.reading import places_in_order, read_placed_rows, replaced_lines

_ACTIONS_WITH_PARTIAL = frozenset({"show", "report", "compare", "compare with", "export"})
"""Actions whose commands have `--partial`."""


class StoredRun(Struct, frozen=True):
    """A stored run.

    Attributes:
        path: absolute path of its directory.
        root: absolute path of the repository root, which paths in its rows are relative to.
        record: content of `run.json`.
        summary: content of `summary.json`, used only for values that rows do not have; None if the run was killed or is
            in progress. For totals, use `totals_of`.
        places: byte offsets of the selected rows in its index; None: all rows.
        labels: labels that were read before the run; None: use those on disk.
    """

    path: Path
    root: str
    run_id: str
    record: JsonObject
    summary: JsonObject | None
    places: Sequence[int] | None = None
    labels: ReadLabels | None = None

    @property
    def index(self) -> Path:
        """The file with its rows."""
        return self.path / INDEX

    @property
    def project(self) -> Path:
        """The project that has its labels: the one whose results contain it, else that of the working directory."""
        above = self.path.parents
        if len(above) > 2 and results_directory(above[2]) == above[0]:
            return above[2]
        return project_with(RESULTS)

    def results(self) -> Iterator[TrialResult]:
        """Yield its finished trials, in the order of the eval files, with the newest result of each.

        Raises:
            StoreError: a line is not a row.
        """
        from agentv.store.rows.results import read_results_at

        return read_results_at(self.index, self.root, self.ordered_places())

    def ordered_places(self) -> Sequence[int]:
        """Return the byte offsets of its rows, or of the selected ones, in the order of the eval files.

        Raises:
            StoreError: a line is not a row.
        """
        if self.places is not None:
            return self.places
        return places_in_order(self.rows(), self.record)

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield all rows that were not replaced, each after the byte offset of its line.

        Raises:
            StoreError: a line is not a row.
        """
        return read_placed_rows(self.index, replaced_lines(self.index))


def open_run(named: str, *, action: str, partial: bool = False) -> StoredRun:
    """Open a run, named by an id, a directory, or `last`.

    Args:
        named: an id or `last` is searched under the repository root of the working directory.
        action: what the command does with the run, for messages.
        partial: allow a run that is still being written.

    Raises:
        UsageError: there is no such run, or it is still being written.
        StoreError: its files cannot be read, or a row or `summary.json` was changed.
    """
    path = find_run(named, project_with(RESULTS), action=action).absolute()
    if not partial and is_being_written(path):
        what = f"the run {path.name} is still being written, in {shown(str(path))}"
        alternative = ", or use --partial" if action in _ACTIONS_WITH_PARTIAL else ""
        raise UsageError(what, f"wait until it ends{alternative}")
    check_rows(path)
    record = read_document(path / RUN)
    stored = stored_summary(path)
    run_id = record.get("run_id")
    if not isinstance(run_id, str):
        raise UsageError(f"{path} is not a run: its {RUN} has no run_id")
    return StoredRun(path, repository_root(str(path.parent)), run_id, record, stored and stored.document)


def refuse_decided(run: StoredRun, action: str) -> None:
    """Raise if a run stopped when its comparison was decided, as its cases are not a sample of fixed size.

    Fixed-sample tests report a false difference in a fifth to a third of such runs.

    Args:
        run: the stored run.
        action: what the command does with the run, for the message.

    Raises:
        UsageError: the run stopped early.
    """
    if run.summary is None or run.summary.get("cut") != "decided":
        return
    what = f"the run {run.run_id} stopped once its comparison was decided: it is too short to {action}"
    raise UsageError(what, f"its result is in {SUMMARY} under `against`; run all cases without --against")


_MAX_LISTED = 5
"""Maximum number of runs in a message."""


def find_run(named: str, root: Path, out: str | None = None, *, action: str = "resume") -> Path:
    """Return the directory of a run, named by an id, a directory, or `last`.

    Raises:
        UsageError: there is no such run, or its `run.json` was removed and the action is not `delete`.
    """
    results = results_directory(root)
    if named == "last":
        if out is not None:
            return Path(out)
        runs = runs_in(results, damaged=True)
        if not runs:
            raise UsageError(f"cannot {action}: {shown(str(results))} has no runs", "`agentv eval` makes one")
        return _with_record(runs[-1])
    for candidate in (results / named, Path(named)):
        if holds_run(candidate):
            return candidate if action == "delete" else _with_record(candidate)
    from agentv.app.results.listing import listed_run  # imported here, as it reads totals
    from agentv.reports.runs import run_words

    newest = [listed_run(path) for path in runs_in(results)[: -_MAX_LISTED - 1 : -1]]
    hint = "there are no runs here yet; `agentv eval` makes one"
    if newest:
        lines = "\n".join(f"  {run.run_id}: {run_words(run)}" for run in newest)
        hint = f"`agentv results list` lists runs; the newest are\n{lines}"
    raise UsageError(f"cannot {action}: no run '{named}' in {shown(str(results))}", hint)


def last_complete_run(root: Path) -> str:
    """Return the id of the newest run that was not limited to a part of its suites, or `last` if none exists."""
    for path in reversed(runs_in(results_directory(root))):
        with suppress(StoreError):
            if read_document(path / RUN).get("partial") is None:
                return path.name
    return "last"


def _with_record(run: Path) -> Path:
    """Return the run, or raise if it has no `run.json`."""
    if (run / RUN).is_file():
        return run
    raise UsageError(missing_record_message(run), f"restore {RUN}, or give another run by its id")
