"""The comparison of two stored runs as an HTML report shows it."""

from __future__ import annotations

from agentv.app.compare.comparing import CompareRequest, compare
from agentv.app.results.stored import StoredRun
from agentv.errors import UsageError
from agentv.extensions.view.pages.comparison import ShownComparison, ShownDifference
from agentv.model.run.comparison import Comparison, ComparisonSettings
from agentv.reports.commands.comparison import basis_lines, headline, left_out_lines, percentage, verdict_line, warnings


def shown_comparison(base: StoredRun, candidate: StoredRun) -> ShownComparison:
    """What `agentv compare` says without options; where it refuses, why."""
    request = CompareRequest((str(base.path), str(candidate.path)), partial=True)
    try:
        found = compare(request, ComparisonSettings(limit=0, plan=True))
    except UsageError as error:
        return ShownComparison("", str(error))
    if not isinstance(found, Comparison):
        raise TypeError("two runs give one comparison")
    return shown_of(found)


def shown_of(found: Comparison) -> ShownComparison:
    """A comparison as a page shows it."""
    verdict, colon, finding = verdict_line(found, needed=False).partition(": ")
    return ShownComparison(
        verdict=verdict if found.whole is not None or found.same else "",
        finding=finding if colon else verdict,
        difference=None if found.same else _difference(found),
        basis=tuple(basis_lines(found)),
        notes=(*warnings(found), *left_out_lines(found)),
        sentence=headline(found),
    )


def _difference(found: Comparison) -> ShownDifference | None:
    if found.whole is None:
        return None
    shown = found.whole.deciding
    return ShownDifference(shown.measure, shown.delta, shown.interval, percentage(shown.level))
