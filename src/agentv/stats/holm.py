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
            raise ValueError(f"a p-value lies between 0 and 1, found {p_value}")
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    raised = [0.0] * len(p_values)
    largest = 0.0
    for smaller, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - smaller) * p_values[place]))
        raised[place] = largest
    return tuple(raised)
