"""Comparisons in a series of runs that goes on: each may spend a part of one error rate.

The comparisons of the run at position t, 1 for the second run of the series, spend α · (1/t^⅔ − 1/(t + 1)^⅔) together.
All these parts sum to α, however long the series gets, so the chance of even one false claim in it is at most α,
whatever the comparisons have in common (Bonferroni). A part depends on the position alone: what was shown stays shown.
The exponent leaves enough for the thirtieth run.

Source: D. P. Foster, R. A. Stine, "α-investing: a procedure for sequential control of expected false discoveries",
Journal of the Royal Statistical Society B 70 (2008), 429-444, which calls this alpha-spending.
"""

from __future__ import annotations

from agentv.model.run.runs import Direction, RunDifference
from agentv.stats.comparison.difference import Differences

ALPHA = 0.05
"""The chance of any false claim in a series."""
EXPONENT = 2 / 3
"""How fast the parts fall."""
CONFIDENCE = 0.95
"""Of each interval alone."""


def level_at(position: int, *, from_baseline: bool = False) -> float:
    """The level of a comparison of the run at this position, from 1 on.

    A quarter is for the comparison with the baseline. At position 1 that is the one with the run before.
    """
    part: float = ALPHA * (position**-EXPONENT - (position + 1) ** -EXPONENT)
    return part if position == 1 else part / 4 if from_baseline else part * 3 / 4


def difference_at(
    before: str, found: Differences, level: float, bounds: tuple[Differences, Differences] | None = None
) -> RunDifference:
    """The difference of a run of the series from an earlier one.

    Args:
        before: id of the earlier run.
        found: the paired differences.
        level: of `level_at`.
        bounds: the differences in the worst and in the best case for the later run, if samples errored. A difference
            is shown only if it is shown in the case that speaks against it, too.
    """
    seen = _shown(found, level)
    direction = seen
    if bounds is not None and seen is not None and _shown(bounds[seen == "lower"], level) != seen:
        direction = None
    interval = found.interval(CONFIDENCE)
    cases = len(found.values)
    return RunDifference(before, cases, found.mean, interval, found.p(), level, direction, direction != seen)


def _shown(found: Differences, level: float) -> Direction | None:
    claim = found.evidence("pass rate", 0.0).claim(level)
    return "higher" if claim == "better" else "lower" if claim == "worse" else None
