"""Lookup of a run by id, directory, or `last`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from agentv.app.results.place import begun, runs_in
from agentv.authoring.source.files import shown
from agentv.errors import StoreError, UsageError
from agentv.store.files.directory import RUN, holds_run, read_document, results_directory, without_record

_LISTED = 5
"""Runs that a message names."""


def find_run(named: str, root: Path, out: str | None = None, *, action: str = "resume") -> Path:
    """The directory of a run: an id, a directory, or `last`.

    Raises:
        UsageError: no such run, or its `run.json` was removed; such a run can still be deleted.
    """
    results = results_directory(root)
    if named == "last":
        if out is not None:
            return Path(out)
        runs = sorted((path for path in results.iterdir() if holds_run(path)) if results.is_dir() else (), key=begun)
        if not runs:
            raise UsageError(f"cannot {action}: {shown(str(results))} has no runs", "`agentv eval` makes one")
        return _recorded(runs[-1])
    for candidate in (results / named, Path(named)):
        if holds_run(candidate):
            return candidate if action == "delete" else _recorded(candidate)
    raise UsageError(f"cannot {action}: no run '{named}' in {shown(str(results))}", _newest(results))


def whole_or_last(root: Path) -> str:
    """The id of the newest run of whole suites, if there is one; else `last`."""
    for path in reversed(runs_in(results_directory(root))):
        with suppress(StoreError):
            if read_document(path / RUN).get("partial") is None:
                return path.name
    return "last"


def _newest(results: Path) -> str:
    """The newest runs, each with its date, its rate and what ran."""
    from agentv.app.results.listing import listed_run  # which reads totals
    from agentv.reports.commands.runs import run_words

    newest = [listed_run(path) for path in runs_in(results)[: -_LISTED - 1 : -1]]
    if not newest:
        return "there are no runs here yet; `agentv eval` makes one"
    shown = "\n".join(f"  {run.run_id}: {run_words(run)}" for run in newest)
    return f"`agentv results list` lists runs; the newest are\n{shown}"


def _recorded(run: Path) -> Path:
    """The run, which must still say what it was."""
    if (run / RUN).is_file():
        return run
    raise UsageError(without_record(run), f"restore {RUN}, or give another run by its id")
