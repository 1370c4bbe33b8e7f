"""The comparison of two runs as pages show it: the verdict and its basis, with the sentences of `agentv compare`."""

from __future__ import annotations

from msgspec import Struct

from agentv.app.compare.comparing import CompareRequest, compare
from agentv.app.results.stored import StoredRun
from agentv.errors import UsageError
from agentv.model.run.comparison import Comparison, ComparisonSettings
from agentv.reports.comparison import basis_lines, headline, left_out_lines, verdict_line, warnings
from agentv.reports.run.paired import percentage, usage_rows


class ShownDifference(Struct, frozen=True):
    """The difference that the verdict is about, candidate minus base, -1..1.

    Attributes:
        measure: name of the measure, such as `pass rate`.
        interval: confidence interval; None with too few cases.
        level: confidence level of the interval, as text.
    """

    measure: str
    delta: float
    interval: tuple[float, float] | None
    level: str


class ShownComparison(Struct, frozen=True):
    """Result of a comparison.

    Attributes:
        verdict: one word or two, such as `better` or `inconclusive`; empty if the runs cannot be compared.
        finding: the verdict in one sentence with its certainty, or why the runs cannot be compared.
        basis: lines about the numbers that it is based on.
        notes: lines about warnings, and about cases that are not counted.
        sentence: the result in one or two sentences; empty if nothing was compared.
        usage: a row for each known resource: name, before, after, difference, interval.
    """

    verdict: str
    finding: str
    difference: ShownDifference | None = None
    basis: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sentence: str = ""
    usage: list[list[str]] = []


def shown_comparison(base: StoredRun, candidate: StoredRun) -> ShownComparison:
    """The result of `agentv compare` without options, or why it refuses."""
    request = CompareRequest((str(base.path), str(candidate.path)), partial=True)
    try:
        found = compare(request, ComparisonSettings(limit=0, plan=True))
    except UsageError as error:
        return ShownComparison("", str(error))
    if not isinstance(found, Comparison):
        raise TypeError("two runs give one comparison")
    return shown_of(found)


def shown_of(found: Comparison) -> ShownComparison:
    """A comparison in the form that pages show."""
    verdict, colon, finding = verdict_line(found).partition(": ")
    shown = None if found.whole is None or found.same else found.whole.deciding
    return ShownComparison(
        verdict=verdict if found.whole is not None or found.same else "",
        finding=finding if colon else verdict,
        difference=None
        if shown is None
        else ShownDifference(shown.measure, shown.delta, shown.interval, percentage(shown.level)),
        basis=tuple(basis_lines(found)),
        notes=(*warnings(found), *left_out_lines(found)),
        sentence=headline(found),
        usage=[] if found.whole is None or found.same else usage_rows(found.whole.usage),
    )
