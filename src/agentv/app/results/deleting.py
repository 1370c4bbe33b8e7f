"""`agentv results delete` and `pin`: select runs, check that they can be deleted, delete and pin them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.results.listing import listed_run
from agentv.app.results.place import RESULTS, project_with, runs_in
from agentv.app.results.stored import find_run
from agentv.authoring.source.files import shown
from agentv.errors import StoreError, UsageError
from agentv.model.run.runs import ListedRun
from agentv.store.files.directory import RUN, is_being_written, read_document, results_directory
from agentv.store.files.encoding import to_document
from agentv.store.files.whole_file import write_whole
from agentv.store.removal import check_removable, remove_run, size_of_run

PINS = "pinned.json"
"""File in the results directory: `{"runs": [id, …]}`, the newest pin last."""


def pinned_runs(results: Path) -> list[str]:
    """Return the ids of the pinned runs, the newest pin last.

    Raises:
        StoreError: the file cannot be read.
    """
    if not (results / PINS).exists():
        return []
    found = read_document(results / PINS).get("runs")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def pin(named: str, *, remove: bool = False) -> str:
    """Pin a run of the project, or remove its pin; return its id.

    Raises:
        UsageError: there is no such run.
        StoreError: the file cannot be read or written.
    """
    root = project_with(RESULTS)
    run = find_run(named, root, action="pin")
    results = results_directory(root)
    if run.resolve().parent != results.resolve():
        raise UsageError(f"cannot pin {run}: it is not in {shown(str(results))}")
    others = [one for one in pinned_runs(results) if one != run.name]
    write_whole(results / PINS, [to_document({"runs": [*others, *([] if remove else [run.name])]}).decode()])
    return run.name


_ID_TIME = "%Y%m%dT%H%M%SZ"


class SelectedRuns(Struct, frozen=True):
    """Runs to delete.

    Attributes:
        size: total size in bytes.
        not_deleted: messages about selected runs that are not deleted.
        refused: some of these runs cannot be deleted for reasons other than being pinned or still written.
    """

    paths: tuple[Path, ...]
    size: int
    not_deleted: tuple[str, ...] = ()
    refused: bool = False

    def listed(self) -> list[ListedRun]:
        """Return the list entry of each run."""
        return [listed_run(path) for path in self.paths]


class Deleted(Struct, frozen=True):
    """Result of deleting runs: number of deleted runs, paths left in place, and errors."""

    runs: int
    left: tuple[str, ...]
    errors: tuple[str, ...]


def named_runs(names: Sequence[str]) -> SelectedRuns:
    """Return the runs with the given ids or directories.

    Raises:
        UsageError: a run does not exist, or is still being written.
        StoreError: a run is a link, or was not written by agentv.
    """
    root = project_with(RESULTS)
    paths = dict.fromkeys(find_run(name, root, action="delete").absolute() for name in names)
    for path in paths:
        check_removable(path)
        if is_being_written(path):
            what = f"the run {path.name} is still being written, in {shown(str(path))}"
            raise UsageError(what, "wait until it ends, or stop it")
    return _selected(paths)


def runs_by_age(older_than: timedelta | None, keep: int, now: datetime) -> SelectedRuns:
    """Return the repository's runs older than `older_than`, except the newest `keep` of all runs and pinned ones."""
    results = results_directory(project_with(RESULTS))
    found, pinned = runs_in(results, damaged=True), set(pinned_runs(results))
    chosen = found[: max(len(found) - keep, 0)]
    old = [path for path in chosen if older_than is None or now - _start_time(path) > older_than]
    kept, refused = dict[Path, str](), dict[Path, str]()
    for path in old:
        try:
            check_removable(path)
            if path.name in pinned:
                kept[path] = f"the run {path.name} was not deleted: it is pinned as a baseline"
            elif is_being_written(path):
                kept[path] = f"the run {path.name} was not deleted: it is still being written"
        except StoreError as error:
            refused[path] = str(error)
    reasons = {**kept, **refused}
    selected = _selected(path for path in old if path not in reasons)
    return replace(selected, not_deleted=tuple(reasons[path] for path in old if path in reasons), refused=bool(refused))


def _selected(paths: Iterable[Path]) -> SelectedRuns:
    chosen = tuple(paths)
    return SelectedRuns(chosen, sum(map(size_of_run, chosen)))


def _start_time(path: Path) -> datetime:
    """Return when a run began, by its id, else by the time of its `run.json`, else of its directory."""
    try:
        return datetime.strptime(path.name.partition("-")[0], _ID_TIME).replace(tzinfo=UTC)
    except ValueError:
        record = path / RUN
        return datetime.fromtimestamp((record if record.exists() else path).stat().st_mtime, UTC)


def delete(selected: SelectedRuns) -> Deleted:
    """Delete runs. An error with one run does not affect the others."""
    deleted, left, errors = 0, list[str](), list[str]()
    for path in selected.paths:
        try:
            others = remove_run(path)
        except StoreError as error:
            errors.append(str(error))
            continue
        deleted += 1
        if others:
            left.append(f"{path} was not deleted, because it also contains {', '.join(others)}")
    return Deleted(deleted, tuple(left), tuple(errors))
