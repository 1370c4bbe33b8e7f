"""Exports of a run: the formats, the data that each is made from, and writing them to files (SPEC section 13)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.results.stored import StoredRun
from agentv.authoring.source.files import is_directory
from agentv.errors import StoreError, UsageError
from agentv.model.run.labels import Ratings
from agentv.model.run.summary import Summary
from agentv.registry.extensions import EXPORT_FORMATS, HOW_TO_GET, known, lacking, loaded, registered
from agentv.store.files.directory import HISTORY, INDEX, JOURNAL, REJECTED, RUN, SUMMARY
from agentv.store.files.lines import lines_at, read_lines
from agentv.store.files.whole_file import check_place, write_whole
from agentv.store.rows.reading import is_torn, key_of_row, not_a_row, replaced_lines, variable_names

if TYPE_CHECKING:
    from agentv.registry.types import ReportFormat
    from agentv.reports.junit import CaseKey


class Exported(Struct, frozen=True):
    """Data of an export: a run with all or some of its trials, and the run that it is compared with, if any."""

    run: StoredRun
    against: StoredRun | None = None

    def totals(self) -> Summary:
        """Return the totals of the whole run, even if only some of its trials are exported."""
        from agentv.app.labelled_runs import labelled_runs
        from agentv.app.results.listing import compared_totals_of

        return labelled_runs().with_rates(compared_totals_of(self.run.path, self.run.record), self.run)

    def rows(self) -> Iterator[str]:
        """Yield the rows of the trials as they are on disk, so that unknown keys are preserved."""
        run = self.run
        if run.places is not None:
            return _checked(run, lines_at(run.index, run.places))
        replaced = replaced_lines(run.index)
        return _checked(run, ((number, line) for number, line in read_lines(run.index) if number not in replaced))


def _checked(run: StoredRun, lines: Iterable[tuple[int, bytes]]) -> Iterator[str]:
    for number, line in lines:
        if key_of_row(line) is not None:
            yield line.decode("utf-8", "replace").rstrip("\r\n")
        elif not is_torn(line):
            raise not_a_row(run.index, number, ValueError("it has no key"))


Renderer = Callable[[Exported], Iterator[str]]
"""Renders a run as the text of a file, piece by piece."""


def _jsonl(exported: Exported) -> Iterator[str]:
    return (f"{row}\n" for row in exported.rows())


def _json(exported: Exported) -> Iterator[str]:
    from agentv.reports.json_report import render_document

    ratings = [one.as_rating() for given in _ratings(exported.run).values() for one in given]
    return render_document(exported.run.record, exported.totals().as_json(), exported.rows(), ratings)


def _csv(exported: Exported) -> Iterator[str]:
    from agentv.reports.csv_rows import render_csv

    run = replace(exported.run, places=exported.run.ordered_places())
    names = variable_names(run.index, run.places or ())
    return render_csv(run.results(), names, root=run.root, ratings=_ratings(run))


def _ratings(run: StoredRun) -> Ratings:
    from agentv.app.labelled_runs import labelled_runs

    return labelled_runs().ratings(run.path, run.project)


def _junit(exported: Exported) -> Iterator[str]:
    from agentv.reports.junit import JUnitRun, render_junit

    run, totals = exported.run, exported.totals()
    described = JUnitRun(run.run_id, run.root, gates=totals.gates)
    if totals.samples is not None or totals.early_stops is not None:
        described = replace(described, passed=frozenset(_passed_cases(run)))
    if run.places is None:
        described = replace(described, summary=totals, not_run=totals.trials.skipped)
    return render_junit(run.results(), described)


def _passed_cases(run: StoredRun) -> Iterator[CaseKey]:
    """Yield the cases whose verdict over all samples is passed."""
    from agentv.app.compare.gathering import cases_of

    cases = cases_of(run.rows())
    for number in range(len(cases)):
        if cases.status(number) == "passed":
            place = cases.place(number)
            path = str(Path(run.root, place.path)) if place.path else ""
            yield place.suite, path, cases.case_id(number), place.prompt, place.target, place.variant


def _markdown(exported: Exported) -> Iterator[str]:
    from agentv.reports.markdown import render_markdown
    from agentv.reports.run.rerun import RerunOptions
    from agentv.reports.run.view import RunView
    from agentv.reports.text import shown_from

    run = exported.run
    view = RunView(
        0, rerun=RerunOptions.of(run.record, here=run.root, root=run.root, directory=str(run.path.absolute()))
    )
    for result in exported.run.results():
        view.add(result)
    yield render_markdown(view, exported.totals(), here=run.root, results=shown_from(str(run.path), run.root))


def _of_plugin(report: ReportFormat, exported: Exported) -> Iterator[str]:
    from agentv.app.plugins import render_report
    from agentv.registry.types import RunData

    rows = (json.loads(row) for row in exported.rows())
    return render_report(report, RunData(exported.run.run_id, exported.run.record, exported.totals().as_json(), rows))


EXPORTS: Mapping[str, Renderer] = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".xml": _junit, ".md": _markdown}
"""Built-in renderers by lowercase file suffix. Extensions and plugins add others."""


def known_suffixes() -> list[str]:
    """Return every suffix for exports, including those of extensions that are not installed. Imports no plugin."""
    from agentv.app.plugins import report_suffixes

    return [*EXPORTS, *known(EXPORT_FORMATS), *report_suffixes()]


_RUN_FILES = frozenset({RUN, INDEX, JOURNAL, SUMMARY, HISTORY, REJECTED})
"""Files of a run directory, which an export must not replace."""


def is_export(path: str) -> bool:
    """Whether a value of `--out` names an export instead of a run directory."""
    suffix = Path(path).suffix.lower()
    if path.endswith("/") or len(suffix) < 2:
        return False
    return suffix in EXPORTS or suffix in known_suffixes()


def write_export(exported: Exported, path: Path, suffix: str | None = None) -> None:
    """Write a run to a file. The file is written completely or not at all.

    Args:
        exported: a run that has ended, or that may be partial.
        path: of the file; an existing file is replaced.
        suffix: the format's suffix; None: that of the path.

    Raises:
        UsageError: the suffix names no format, or the path cannot be an export.
        StoreError: the run cannot be read, or the system refuses to write.
    """
    check_export(path, exported.run.path, suffix=suffix)
    write_whole(path, rendered(suffix or path.suffix, exported))


def rendered(suffix: str, exported: Exported) -> Iterator[str]:
    """Yield the text of an export, piece by piece, in the format that a suffix names.

    Raises:
        UsageError: no format has the suffix, or there is nothing to report.
        StoreError: the run cannot be read; raised while iterating.
    """
    return _renderer(suffix)(exported)


def write_exports(run: StoredRun, paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write a run to several files; return the paths that were written and the errors of the others.

    The run is already saved, so a failed export affects neither it nor the other exports.
    """
    written: list[str] = []
    errors: list[str] = []
    for path in paths:
        try:
            write_export(Exported(run), Path(path))
        except (StoreError, UsageError) as error:
            errors.append(str(error))
        else:
            written.append(path)
    return tuple(written), tuple(errors)


def check_exports(paths: Sequence[str], run: str | None, read: Container[str]) -> None:
    """Raise before a run begins if its exports could not be written when it ends.

    Args:
        paths: of the exports.
        run: the run directory, if the user named one.
        read: absolute paths of the files that the run reads.

    Raises:
        UsageError, StoreError: as `write_export`.
    """
    for path in paths:
        check_export(Path(path), None if run is None else Path(run))
        if os.path.realpath(path) in read:
            raise UsageError(f"{path} is an input of this run", "give the export another name")


def check_export(path: Path, run: Path | None, *, suffix: str | None = None) -> None:
    """Raise if an export cannot be written to a path, before anything is run or paid for.

    Args:
        path: of the export.
        run: the run directory, which need not exist yet; None: a new one below `.agentv/results`.
        suffix: as for `write_export`.

    Raises:
        UsageError, StoreError: as `write_export`.
    """
    _renderer(suffix or path.suffix, path)
    inside = run is not None and os.path.realpath(path.parent) == os.path.realpath(run)
    parent_exists = is_directory(str(path.parent))
    if path.name in _RUN_FILES and (inside or (parent_exists and (path.parent / RUN).is_file())):
        raise UsageError(f"{path} is one of the run's own files", "give the export another name")
    if inside and not parent_exists:
        return  # the run creates its directory
    if not parent_exists:
        raise UsageError(f"cannot write {path}: the directory {path.parent} does not exist", f"mkdir -p {path.parent}")
    check_place(path)


def _renderer(suffix: str, path: Path | str = "it") -> Renderer:
    """Return the renderer for a suffix: built in, of an extension or of a plugin.

    Raises:
        UsageError: no format has this suffix, or its plugin is broken.
    """
    found = EXPORTS.get(suffix.lower())
    if found is not None:
        return found
    if suffix.lower() in registered(EXPORT_FORMATS):
        of_extension: Renderer = loaded(EXPORT_FORMATS, suffix.lower())
        return of_extension
    from agentv.app.plugins import report_format  # only an unknown suffix needs plugins

    report = report_format(suffix) if len(suffix) > 1 else None
    if report is not None:
        return partial(_of_plugin, report)
    if needs := lacking(EXPORT_FORMATS, suffix.lower()):
        raise UsageError(f"cannot export to {path}: '{suffix}' {needs}", HOW_TO_GET)
    raise UsageError(f"cannot export to {path}: unknown suffix", f"known are {', '.join(known_suffixes())}")
