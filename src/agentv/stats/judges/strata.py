"""Sizes of a sample that is drawn from strata."""

from __future__ import annotations

from collections.abc import Sequence


def even_sizes(wanted: int, available: Sequence[int]) -> list[int]:
    """How many of `wanted` to take from each stratum: one from each in turn, as long as it has one left.

    A larger sample takes at least as many from each.
    """
    sizes = [0] * len(available)
    left = min(wanted, sum(available))
    while left:
        open_strata = [place for place, size in enumerate(sizes) if size < available[place]]
        each = max(1, left // len(open_strata))
        for place in open_strata[:left]:
            more = min(each, available[place] - sizes[place])
            sizes[place] += more
            left -= more
    return sizes
