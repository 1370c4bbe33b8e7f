"""The pass rate of a case whose samples ended where they decided it, without the bias that this puts on the share.

A case stops on a run of passes, or of failures, so the share of its samples that passed lies too far out: of 60 cases
with at most 10 samples each, an ordinary interval around the mean share covers the truth 64 % of the time. Its first
sample has no such bias, but is only one. Given how many samples there were and how many passed, the chance that the
first one did is known, whatever the rate is: it is the part of all ways to get there that begin with a pass. That
chance is unbiased as the first sample is, and varies far less.

Source: M. A. Girshick, F. Mosteller, L. J. Savage, "Unbiased estimates for certain binomial sampling problems with
applications", Annals of Mathematical Statistics 17 (1946), 13–23; D. Blackwell, "Conditional expectation and unbiased
sequential estimation", same journal 18 (1947), 105–110.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from agentv.model.run.sampling import SamplingStop
from agentv.stats.samples.sequence import side

_Row = Sequence[float | None]


def unbiased_rate(stopped: SamplingStop, *, threshold: float, alpha: float, repeat: int) -> float | None:
    """An unbiased estimate of a case's pass rate, 0..1, with the samples up to where they ended.

    Args:
        stopped: how they ended.
        threshold: of the rule that ended them.
        alpha: likewise.
        repeat: the most samples that the case could get.

    Returns:
        None where a sample errored: what it would have come to is not known.
    """
    if stopped.why == "errored" or not stopped.samples:
        return None
    rows = _beginnings(threshold, alpha, repeat)
    if stopped.why != "gate":
        return rows[stopped.samples][stopped.passed]
    if stopped.samples == 1:
        return 0.0  # the first sample is the one that failed the gate
    return rows[stopped.samples - 1][stopped.passed]


@lru_cache(maxsize=16)
def _beginnings(threshold: float, alpha: float, repeat: int) -> Sequence[_Row]:
    """Samples → passes → the share of paths there that begin with a pass; None if there is no path.

    No way goes through a place where the samples end. The ways are counted row by row, as shares of a row's most.
    """
    rows: list[_Row] = [[None]]
    every, begun = [1.0], [0.0]
    for number in range(1, repeat + 1):
        every = _step(every)
        begun = [0.0, 1.0] if number == 1 else _step(begun)
        rows.append([some / all_ if all_ else None for some, all_ in zip(begun, every, strict=True)])
        for passed in range(number + 1):
            if every[passed] and side(passed, number - passed, threshold, alpha) is not None:
                every[passed] = begun[passed] = 0.0
        most = max(every)
        if not most:
            break
        every, begun = [one / most for one in every], [one / most for one in begun]
    return rows


def _step(ways: Sequence[float]) -> list[float]:
    """The ways to each number of passes after one more sample."""
    return [
        (ways[passed] if passed < len(ways) else 0.0) + (ways[passed - 1] if passed else 0.0)
        for passed in range(len(ways) + 1)
    ]
