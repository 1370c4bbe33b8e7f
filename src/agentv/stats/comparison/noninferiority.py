"""Better, worse, equivalent, non-inferior or inconclusive: what the interval of a difference shows at a margin."""

from __future__ import annotations

from typing import Literal

Verdict = Literal["better", "worse", "equivalent", "non-inferior", "inconclusive"]


def verdict(low: float, high: float, margin: float) -> Verdict:
    """What an interval from `low` to `high` shows of a difference (candidate - base).

    `margin` is the largest difference that does not matter, either way. The whole interval decides, never its middle:

    - `better`: all of it lies above +margin;
    - `worse`: all of it lies below -margin;
    - `equivalent`: all of it lies within -margin..+margin, both ends included, and the margin is above 0;
    - `non-inferior`: none of it lies below -margin, and the margin is above 0: the candidate may be better, and is not
      worse by more than the margin;
    - `inconclusive`: the data fit with a difference that matters and with one that does not.

    With a margin of 0 nothing is equivalent or non-inferior: an interval that touches 0 is inconclusive. Swapping the
    two runs swaps better and worse; equivalent and inconclusive stay, but for the candidate that is non-inferior.

    Source: G. Piaggio et al., "Reporting of noninferiority and equivalence randomized trials: extension of the CONSORT
    2010 statement", JAMA 308 (2012), 2594-2604, figure 1.

    Args:
        low: where the interval begins; -inf where nothing is known.
        high: where it ends.
        margin: 0 or above, in the unit of the difference.

    Raises:
        ValueError: the margin is negative, or `low` lies above `high`.
    """
    if not margin >= 0:
        raise ValueError(f"a margin must be at least 0, found {margin}")
    if not low <= high:
        raise ValueError(f"no interval: {low} to {high}")
    if low > margin:
        return "better"
    if high < -margin:
        return "worse"
    if margin == 0 or low < -margin:
        return "inconclusive"
    return "equivalent" if high <= margin else "non-inferior"
