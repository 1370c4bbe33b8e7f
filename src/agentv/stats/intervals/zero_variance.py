"""Largest share of cases that may differ although none of those seen did."""

from __future__ import annotations

from math import ceil, log

from agentv.stats.intervals.proportion import USUAL


def unseen_share(seen: int, level: float = USUAL) -> float:
    """The largest share of other cases that fits with `seen` cases which were all alike: 1 − ((1 − level)/2)^(1/seen).

    It is the upper end of the exact interval of 0 of `seen`; at level 0.95 about 3.7 divided by `seen`. R:
    `binom.test(0, seen, conf.level = level)$conf.int[2]`.

    Source: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934), 404–413.
    """
    if seen < 1:
        raise ValueError(f"nothing was seen: {seen}")
    return float(1 - ((1 - level) / 2) ** (1 / seen))


def cases_for_share(share: float, level: float = USUAL) -> int:
    """How many cases must be seen, all alike, until at most such a share of others can be unlike them.

    Args:
        share: above 0; from 1 on one case will do.
        level: as of `unseen_share`, which this turns around.
    """
    return 1 if share >= 1 else ceil(log((1 - level) / 2) / log(1 - share))
