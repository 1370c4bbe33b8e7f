"""Result of a run with `--against`, compared with the earlier run."""

from __future__ import annotations

from agentv.model.run.sequential import SequentialComparison
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line, percent
from agentv.reports.text.signs import signed


def against_line(found: SequentialComparison) -> str:
    """`worse than 20261122T184730Z-a1f8: pass rate -0.120 (95.0% confidence interval -0.215 to -0.012), …`."""
    low, high = found.interval
    interval = f"{percent(1 - found.alpha)} confidence interval {signed(low, 3)} to {signed(high, 3)}, anytime-valid"
    drawn = f"{found.drawn:,} of {plural(found.cases, 'case')} drawn at random"
    if found.clusters != found.drawn:
        drawn += f", in {plural(found.clusters, 'cluster')}"
    return f"{_claim(found)}: pass rate {_difference(found)} ({interval}) on {drawn}{''.join(_rest(found))}"


def _claim(found: SequentialComparison) -> str:
    base = one_line(found.base)
    if found.verdict == "non-inferior":
        return f"not worse than {base} by more than {found.margin:g}"
    by = f" by more than {found.margin:g}" if found.margin and found.verdict != "inconclusive" else ""
    return f"inconclusive against {base}" if found.verdict == "inconclusive" else f"{found.verdict} than {base}{by}"


def _difference(found: SequentialComparison) -> str:
    low, high = found.difference
    return signed(low, 3) if round(high - low, 9) == 0 else f"{signed(low, 3)} to {signed(high, 3)}"


def _rest(found: SequentialComparison) -> list[str]:
    lines = []
    if found.errored:
        lines.append(f"; {found.errored:,} of them errored and may have passed or failed")
    if found.unpaired:
        lines.append(f"; {found.unpaired:,} more are new or edited, and not counted")
    if found.verdict == "inconclusive" and found.drawn == found.cases:
        lines.append("; more cases would be needed")
    return lines
