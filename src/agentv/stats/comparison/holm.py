"""Many comparisons at once: with twenty suites, one in twenty looks worse at 0.05 by chance alone."""

from __future__ import annotations

from collections.abc import Sequence


def adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given: those up to alpha may be called real, all together at alpha.

    The smallest is multiplied by how many there are, the next by one less, and so on; none may fall below the one
    before it. The chance that even one true null hypothesis is rejected stays below alpha, however the comparisons
    hang together. R: `p.adjust(p, "holm")`.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6
    (1979), 65–70.

    Raises:
        ValueError: one is not inside 0..1.
    """
    for p_value in p_values:
        if not 0 <= p_value <= 1:
            raise ValueError(f"a p-value must be between 0 and 1, found {p_value}")
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    raised = [0.0] * len(p_values)
    largest = 0.0
    for smaller, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - smaller) * p_values[place]))
        raised[place] = largest
    return tuple(raised)


def rejection_levels(p_values: Sequence[float], alpha: float) -> tuple[float, ...]:
    """Of each test the level at which Holm's procedure holds it: it is rejected exactly when p is at most that level.

    The smallest of k p-values is held against alpha / k; if it is rejected, the next against alpha / (k - 1), and so
    on. From the first that is not rejected, the rest are held against the same level as that one. A confidence interval
    at one minus its level therefore agrees with the corrected test.

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
