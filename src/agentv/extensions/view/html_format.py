"""The export format `.html`: a run, and its changes from another one, as one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from agentv.app.exports import Exported
from agentv.errors import UsageError
from agentv.extensions.view.pages import HtmlReport, render
from agentv.extensions.view.pages.work import shown_work


def rendered(exported: Exported) -> Iterator[str]:
    """A run, and its changes from another one, as one HTML file.

    Raises:
        UsageError: nothing is in it.
    """
    report, against = _report(exported), exported.against
    if against is None:
        return render(report)
    from agentv.extensions.view.shown_comparison import shown_comparison  # imports statistics

    return render(report, _report(Exported(against)), shown_comparison(against, exported.run))


def _report(exported: Exported) -> HtmlReport:
    """A run as the page wants it.

    Raises:
        UsageError: nothing is in it.
    """
    run, totals = exported.run, exported.totals()
    if next(exported.results(), None) is None and not totals.is_empty_shard:
        raise UsageError(f"nothing to report: the run {run.run_id} has no such trial")
    report = HtmlReport.of(run.run_id, run.record, totals, exported.results(), run.root)
    directory = str(run.path.absolute())
    return replace(report, work_of=partial(shown_work, run.path), here=_working_directory(), directory=directory)


def _working_directory() -> str:
    """Where the report is written from; empty: it was removed."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return ""
