"""A run that is compared with another one while it goes on (`agentv eval --against RUN --until decided`)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

NOT_DRAWN = "not-drawn"
"""The code of trials that were not run since the comparison was decided before their case was drawn."""

SequentialVerdict = Literal["better", "worse", "non-inferior", "inconclusive"]


class SequentialComparison(Struct, frozen=True):
    """What the cases that were drawn show of a run against its base. Rates are those of samples that passed.

    Attributes:
        base: the id of the run that it is compared with.
        verdict: the first claim that was shown; `inconclusive`: none was.
        difference: of the pass rates, candidate less base, over the cases that count, at its worst and at its best:
            they differ where something errored, which may have passed or failed.
        interval: of that difference; right at all looks at once with a chance of 1 − alpha at least.
        alpha: the chance, at most, that a claim is wrong, however often was looked.
        margin: a loss up to this does not matter; 0: none was named.
        drawn: how many cases count: those that were drawn up to the claim.
        clusters: how many groups of dependent cases these make; as many as `drawn` where every case stands alone.
        cases: how many both runs have in common.
        unpaired: cases of this run that are new, or edited since; they are in no number.
        errored: how many of those that count are known within bounds only.
        seed: of the order in which cases are drawn.
    """

    base: str
    verdict: SequentialVerdict
    difference: tuple[float, float]
    interval: tuple[float, float]
    alpha: float
    margin: float
    drawn: int
    clusters: int
    cases: int
    unpaired: int
    errored: int
    seed: int
