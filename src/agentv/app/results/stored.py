"""A run as it lies on disk: what every command that looks at runs begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentv.app.results.finding import find_run
from agentv.errors import UsageError
from agentv.model.trial import TrialResult
from agentv.model.values import JsonObject
from agentv.spec.files import repository_root, shown
from agentv.store.directory import INDEX, RUN, SUMMARY, is_being_written, read_document


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run whose directory is there.

    Attributes:
        path: of its directory, absolute.
        root: absolute path of the repository root, which the paths in its rows are relative to.
        record: `run.json`.
        summary: `summary.json`; None of a run that was killed, or goes on.
        places: where in its index the rows begin that are looked at, in bytes; None: all of them are.
    """

    path: Path
    root: str
    run_id: str
    record: JsonObject
    summary: JsonObject | None
    places: Sequence[int] | None = None

    @property
    def index(self) -> Path:
        """The file with its rows."""
        return self.path / INDEX

    def results(self) -> Iterator[TrialResult]:
        """Its finished trials, in the order in which they ended; of a trial that was done again, the newest.

        Raises:
            StoreError: a line is no row; the text names it.
        """
        from agentv.store.current import replaced_lines
        from agentv.store.results import read_results, read_results_at

        if self.places is not None:
            yield from read_results_at(self.index, self.root, self.places)
            return
        yield from read_results(self.index, self.root, replaced_lines(self.index))


def open_run(named: str, *, doing: str, partial: bool = False) -> StoredRun:
    """The run that a person names: an id, a directory, or `last`.

    Args:
        named: an id or `last` is looked for under the repository root of the working directory.
        doing: what is to be done with it, for the message.
        partial: take one that is still being written too.

    Raises:
        UsageError: there is none, or it is still being written.
        StoreError: its files cannot be read.
    """
    path = find_run(named, Path(repository_root(str(Path.cwd()))), doing=doing).absolute()
    if not partial and is_being_written(path):
        what = f"the run {path.name} is still being written, in {shown(str(path))}"
        raise UsageError(what, "wait for its end, or take it with --partial")
    record = read_document(path / RUN)
    summary = read_document(path / SUMMARY) if (path / SUMMARY).exists() else None
    run_id = record.get("run_id")
    if not isinstance(run_id, str):
        raise UsageError(f"{path} holds no run: its {RUN} has no run_id")
    return StoredRun(path, repository_root(str(path.parent)), run_id, record, summary)
