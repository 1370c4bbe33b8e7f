"""Many comparisons at once: with twenty suites, one in twenty looks worse at 0.05 by chance alone."""

from __future__ import annotations

from collections.abc import Sequence


def rejection_levels(p_values: Sequence[float], alpha: float) -> tuple[float, ...]:
    """Of each test the level at which Holm's procedure holds it: it is rejected exactly when p is at most that level.

    The smallest of k p-values is held against alpha / k; if it is rejected, the next against alpha / (k - 1), and so
    on. From the first that is not rejected, the rest are held against the same level as that one. The chance that even
    one true null hypothesis is rejected stays below alpha, however the comparisons hang together.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6
    (1979), 65–70.

    Args:
        p_values: uncorrected, each 0..1.
        alpha: of all of them together, inside 0..1.
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    levels = [alpha] * len(p_values)
    level, holding = alpha, True
    for smaller, place in enumerate(order):
        if holding:
            level = alpha / (len(p_values) - smaller)
            holding = p_values[place] <= level
        levels[place] = level
    return tuple(levels)
