"""Probability that a sum of weighted gamma variables is not above zero, exactly and for many sums at once.

A random reweighting of observations with Dirichlet(1, …, 1) weights has a mean not above zero exactly if Σ G_k · y_k is
not, where observations of the value y_k occur n_k times and G_k is Gamma(n_k). With the cumulant generating function
K(t) = −Σ n_k · log(1 − t · y_k) the probability is the integral of exp(K(s)) / −s along a vertical line left of zero.
On the line through the saddle point the integrand falls fast and without oscillating, so that the trapezoidal rule is
right to 10 digits.

Source: H. E. Daniels, "Tail probability approximations", International Statistical Review 55 (1987), 37-48: the
integral in section 3, the approximation of Lugannani and Rice in section 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

STEP = 0.2
"""Of the trapezoidal rule, in the argument of sinh."""
AT_ONCE = 16
"""Nodes that are evaluated before a look at whether the rest matters."""
NOTHING = 1e-17
NEWTON = 60
NEAR = 0.03
"""Relative distance to a level within which an approximation decides nothing."""


def not_above_zero(values: Numbers, counts: Numbers) -> float:
    """The probability that Σ G_k · values_k is at most 0, G_k being independent and Gamma(counts_k).

    Args:
        values: one a kind; sort them, so that the same kinds in another order give the same last digit.
        counts: above 0.
    """
    lowest, highest = float(values.min()), float(values.max())
    if highest <= 0 or lowest >= 0:
        return 1.0 if highest <= 0 else 0.0
    if float((values * counts).sum()) < 0:
        return 1.0 - _below(-values, counts)
    return _below(values, counts)


def _below(values: Numbers, counts: Numbers) -> float:
    """As `not_above_zero`, where the mean of the sum is at least 0."""
    scaled = values / -values.min()
    lowest, highest, point = -1.0, 0.0, -0.5  # the saddle point of K(s) - log(-s) lies between
    for _ in range(NEWTON):
        parts = scaled / (1 - point * scaled)
        slope = float((counts * parts).sum()) - 1 / point
        curve = float((counts * parts * parts).sum()) + 1 / point**2
        lowest, highest = (lowest, point) if slope > 0 else (point, highest)
        found = point - slope / curve
        before, point = point, found if lowest < found < highest else (lowest + highest) / 2
        if abs(point - before) <= 1e-12 * abs(point):
            break
    deviation = curve**-0.5
    parts = scaled / (1 - point * scaled)
    area, begin, last = -0.5, 0, 1.0  # the first node counts half, and is 1
    while last > NOTHING:
        steps = np.arange(begin, begin + AT_ONCE) * STEP
        up = deviation * np.sinh(steps)  # from the saddle point
        turns = up[:, None] * parts
        away = np.log1p(turns * turns) @ counts / 2 - 1j * (np.arctan(turns) @ counts)
        heights = np.exp(-away) / (1 + 1j * up / point) * np.cosh(steps)
        area += float(np.real(heights).sum())
        begin, last = begin + AT_ONCE, float(np.abs(heights[-1]))
    height = -float((counts * np.log1p(-point * scaled)).sum())
    return float(np.exp(height) * deviation / -point / np.pi * STEP * area)


def not_above_zero_each(values: Numbers, counts: Numbers, levels: Numbers) -> Numbers:
    """As `not_above_zero` for each row; exact where it is near one of the levels, else right to about 2 %.

    Where the mean of the sum is not above zero it is 1: that probability is not near any level.

    Args:
        values: one row a sum, with as many kinds in each.
        counts: of each kind; may be 0.
        levels: probabilities that somebody compares the results with.
    """
    values = np.where(counts > 0, values, 0.0)
    lowest, highest = values.min(axis=1), values.max(axis=1)
    found = np.where((lowest >= 0) & (highest > 0), 0.0, 1.0)
    rows = np.flatnonzero((lowest < 0) & ((values * counts).sum(axis=1) > 0))
    if rows.size:
        found[rows] = _approximated(values[rows], counts[rows], lowest[rows], highest[rows])
    near = np.abs(found[rows, None] / levels - 1).min(axis=1) <= NEAR
    for row in rows[near]:
        there = values[row] != 0
        found[row] = not_above_zero(values[row][there], counts[row][there])
    return found


def _approximated(values: Numbers, counts: Numbers, lowest: Numbers, highest: Numbers) -> Numbers:
    """Lugannani and Rice's approximation in Barndorff-Nielsen's form; each sum may be below and above zero."""
    from scipy.special import ndtr

    left, right = 1 / lowest, 1 / highest
    point = np.zeros(len(values))
    for _ in range(30):
        parts = values / (1 - point[:, None] * values)
        slope = (counts * parts).sum(axis=1)
        left, right = np.where(slope < 0, point, left), np.where(slope > 0, point, right)
        found = point - slope / (counts * parts * parts).sum(axis=1)
        found = np.where((found <= left) | (found >= right), (left + right) / 2, found)
        settled = np.abs(found - point) <= 1e-4 * np.abs(found)
        point = found
        if settled.all():
            break
    shares = values / (1 - point[:, None] * values)
    curve = (counts * shares * shares).sum(axis=1)
    height = (counts * np.log1p(-point[:, None] * values)).sum(axis=1)
    root = np.sign(point) * np.sqrt(np.maximum(2 * height, 0))
    middle = np.abs(root) < 1e-4  # the mean of the sum is 0
    safe = np.where(middle, 1.0, root)
    ratio = np.where(middle, 1.0, point * np.sqrt(curve) / safe)
    return np.where(middle, 0.5, ndtr(safe + np.log(ratio) / safe))
