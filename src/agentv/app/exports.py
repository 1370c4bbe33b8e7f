"""A run as a file for other programs and for people: which formats there are, and how one is written (SPEC section 13).

A format is known by the suffix of the file. What it looks like is decided in `reports`, from trials and totals alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.app.results.stored import StoredRun
from agentv.errors import StoreError, UsageError
from agentv.model.summary import Summary
from agentv.model.trial import TrialResult
from agentv.spec.files import is_directory
from agentv.store.directory import HISTORY, INDEX, JOURNAL, REJECTED, RUN, SUMMARY
from agentv.store.whole_file import check_place, write_whole

if TYPE_CHECKING:
    from agentv.reports.html import HtmlReport

Choice = Callable[[TrialResult], bool]
"""Whether a trial is in an export."""

_OWN = frozenset({RUN, INDEX, JOURNAL, SUMMARY, HISTORY, REJECTED})
"""What a run keeps in its directory: an export must not take the place of it."""


def everything(_: TrialResult) -> bool:
    """The choice of who chooses nothing. Where it is given, rows need not be looked into."""
    return True


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export is of: a run, those of its trials that were chosen, and the run that it is compared with."""

    run: StoredRun
    chosen: Choice = everything
    against: StoredRun | None = None

    @property
    def whole(self) -> bool:
        """Whether it is of all trials."""
        return self.chosen is everything and self.run.places is None

    def results(self) -> Iterator[TrialResult]:
        """The chosen trials, in the order in which they ended."""
        return (one for one in self.run.results() if self.chosen(one))

    def totals(self) -> Summary:
        """The totals of the whole run, of which the chosen trials are a part."""
        from agentv.app.results.listing import totals_of

        return totals_of(self.run.path, self.run.record)[0]

    def rows(self) -> Iterator[str]:
        """The rows of the chosen trials as they lie on disk, so that keys which only others know stay in them."""
        from agentv.store.current import replaced_lines
        from agentv.store.lines import lines_at, read_lines
        from agentv.store.results import read_results

        if self.run.places is not None:
            yield from _checked(self.run, lines_at(self.run.index, self.run.places))
            return
        replaced = replaced_lines(self.run.index)
        lines = ((number, line) for number, line in read_lines(self.run.index) if number not in replaced)
        if self.whole:
            yield from _checked(self.run, lines)
            return
        for (_, line), result in zip(lines, read_results(self.run.index, self.run.root, replaced), strict=False):
            if self.chosen(result):
                yield _text(line)


def _checked(run: StoredRun, lines: Iterable[tuple[int, bytes]]) -> Iterator[str]:
    from agentv.store.reading import is_torn, key_of_row, not_a_row

    for number, line in lines:
        if key_of_row(line) is not None:
            yield _text(line)
        elif not is_torn(line):
            raise not_a_row(run.index, number, ValueError("it has no key"))


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r\n")


Renderer = Callable[[Exported], Iterator[str]]
"""A run to the text of a file, piece by piece."""


def _jsonl(exported: Exported) -> Iterator[str]:
    return (f"{row}\n" for row in exported.rows())


def _json(exported: Exported) -> Iterator[str]:
    from agentv.reports.json_document import render_document

    return render_document(exported.run.record, exported.totals().as_json(), exported.rows())


def _csv(exported: Exported) -> Iterator[str]:
    from agentv.reports.csv_rows import render_csv

    return render_csv(exported.results(), root=exported.run.root)


def _junit(exported: Exported) -> Iterator[str]:
    from agentv.reports.junit import JUnitRun, render_junit

    run = exported.run
    not_run = exported.totals().trials.skipped if exported.whole else 0
    return render_junit(exported.results(), JUnitRun(run.run_id, run.root, not_run))


def _markdown(exported: Exported) -> Iterator[str]:
    from agentv.reports.markdown import render_markdown
    from agentv.reports.paths import shown_from
    from agentv.reports.view import RunView

    run, view = exported.run, RunView(0)
    for result in exported.results():
        view.add(result)
    yield render_markdown(view, exported.totals(), here=run.root, results=shown_from(str(run.path), run.root))


def _html(exported: Exported) -> Iterator[str]:
    from agentv.reports.html import render

    against = exported.against
    return render(_report(exported), None if against is None else _report(Exported(against)))


def _report(exported: Exported) -> HtmlReport:
    """A run as the page wants it.

    Raises:
        UsageError: nothing is in it.
    """
    from agentv.reports.html import HtmlReport

    run = exported.run
    if next(exported.results(), None) is None:
        raise UsageError(f"there is nothing to report: the run {run.run_id} holds no such trial")
    return HtmlReport.of(run.run_id, run.record, exported.totals(), exported.results(), run.root)


EXPORTS: Mapping[str, Renderer] = {
    ".jsonl": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".xml": _junit,
    ".html": _html,
    ".md": _markdown,
}
"""By the suffix of the file, in small letters."""


def is_export(path: str) -> bool:
    """Whether a value of `--out` asks for an export rather than for a run directory."""
    return Path(path).suffix.lower() in EXPORTS and not path.endswith("/")


def write_export(run: StoredRun, path: Path, chosen: Choice = everything) -> None:
    """Write a run to a file, in the format that its suffix names. It is there as a whole, or not at all.

    Args:
        run: which must have ended, or be taken as far as it is.
        path: of the file; one that is there is replaced.
        chosen: which of its trials.

    Raises:
        UsageError: the suffix names no format, or the path is no place for an export.
        StoreError: the run cannot be read, or the system refuses to write.
    """
    write_as(path.suffix, Exported(run, chosen), path)


def write_as(suffix: str, exported: Exported, path: Path) -> None:
    """Write a file as `write_export` does, in the format of a suffix that need not be its own.

    Raises:
        UsageError, StoreError: as `write_export`.
    """
    check_export(path, exported.run.path, suffix=suffix)
    write_whole(path, rendered(suffix, exported))


def export_text(run: StoredRun, suffix: str, chosen: Choice = everything) -> Iterator[str]:
    """What `write_export` writes, piece by piece.

    Raises:
        UsageError, StoreError: as `rendered`.
    """
    return rendered(suffix, Exported(run, chosen))


def rendered(suffix: str, exported: Exported) -> Iterator[str]:
    """The text of an export, piece by piece, in the format that a suffix names.

    Raises:
        UsageError: it names none, or there is nothing to report.
        StoreError: as the pieces are taken: the run cannot be read.
    """
    return _renderer(suffix)(exported)


def write_exports(run: StoredRun, paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write a run to several files; those that were written, and why the others were not.

    The run is over and kept, so that an export that fails takes neither it nor the other exports along.
    """
    written: list[str] = []
    faults: list[str] = []
    for path in paths:
        try:
            write_export(run, Path(path))
        except (StoreError, UsageError) as error:
            faults.append(str(error))
        else:
            written.append(path)
    return tuple(written), tuple(faults)


def check_exports(paths: Sequence[str], run: str | None, read: Container[str]) -> None:
    """Refuse what cannot be written when a run has ended, before it begins.

    Args:
        paths: of the exports.
        run: its directory, where that was named.
        read: absolute paths of the files that the run reads.

    Raises:
        UsageError, StoreError: as `write_export`.
    """
    for path in paths:
        check_export(Path(path), None if run is None else Path(run))
        if os.path.realpath(path) in read:
            raise UsageError(f"{path} is a file that this run reads", "give the export another name")


def check_export(path: Path, run: Path | None, *, suffix: str | None = None) -> None:
    """Refuse what an export cannot be written to, before anything is run or paid for.

    Args:
        path: of the export.
        run: directory of the run, which may be yet to make; None: one below `.agentv/results`.
        suffix: as for `write_export`.

    Raises:
        UsageError, StoreError: as `write_export`.
    """
    _renderer(suffix or path.suffix, path)
    inside = run is not None and os.path.realpath(path.parent) == os.path.realpath(run)
    there = is_directory(str(path.parent))
    if path.name in _OWN and (inside or (there and (path.parent / RUN).is_file())):
        raise UsageError(f"{path} belongs to the run itself", "give the export another name")
    if inside and not there:
        return  # the run makes it
    if not there:
        raise UsageError(f"cannot write {path}: there is no directory {path.parent}", f"mkdir -p {path.parent}")
    check_place(path)


def _renderer(suffix: str, path: Path | str = "it") -> Renderer:
    found = EXPORTS.get(suffix.lower())
    if found is not None:
        return found
    raise UsageError(f"cannot export to {path}: its suffix names no format", f"known are {', '.join(EXPORTS)}")
