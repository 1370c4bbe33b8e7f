"""Better, worse, or cannot tell: what an interval of a difference shows, where small differences do not matter."""

from __future__ import annotations

from typing import Literal

Verdict = Literal["better", "worse", "equivalent", "cannot tell"]


def verdict(low: float, high: float, margin: float, *, unseen: float = 0.0) -> Verdict:
    """What is shown of a difference (candidate − base) by its interval from `low` to `high`.

    `margin` is the largest difference that does not matter, either way. The whole interval decides, never its middle:

    - `better`: all of it lies above +margin;
    - `worse`: all of it lies below −margin;
    - `equivalent`: all of it lies within −margin..+margin, both ends counted, the margin is above 0, and what nobody
      saw lies within it, too;
    - `cannot tell`: it crosses one of the two lines, so that the data fit with both sides.

    With a margin of 0 nothing is ever equivalent: an interval that touches 0 cannot tell. Swapping the two runs swaps
    better and worse and nothing else. A run is non-inferior (not worse by more than the margin) where `low >= -margin`.

    At level 0.95 a wrong `worse` is told about 25 times in 1,000 at most, and so is a wrong `better`.

    Source: G. Piaggio et al., "Reporting of noninferiority and equivalence randomized trials: extension of the CONSORT
    2010 statement", JAMA 308 (2012), 2594–2604, figure 1.

    Args:
        low: where the interval begins; −inf where nothing is known.
        high: where it ends.
        margin: 0 or above, in the unit of the difference.
        unseen: how far the mean may be off by cases unlike all that were seen, such as `unseen.unseen_share` times the
            largest difference that a case can show. One case in 25 that drops by 1 is missing from one sample of 40 in
            five, whose interval knows nothing of it.

    Raises:
        ValueError: the margin is negative, or `low` lies above `high`.
    """
    if not margin >= 0:
        raise ValueError(f"a margin is 0 or above, found {margin}")
    if not low <= high:
        raise ValueError(f"no interval: {low} to {high}")
    if low > margin:
        return "better"
    if high < -margin:
        return "worse"
    if margin > 0 and -margin <= low and high <= margin and unseen <= margin:
        return "equivalent"
    return "cannot tell"
