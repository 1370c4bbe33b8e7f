"""The mean of paired differences, watched while cases are drawn: evidence and bounds that hold at every look.

Somebody bets against "the mean is at most μ". Before each case a part b of the capital is put on a difference above μ;
what the capital is multiplied by is

    1 + b · (d − μ) / (1 + μ)        for a difference d of −1..1, which is 0 or more

Cases that depend on each other are drawn together, and are one bet: of n cases whose differences sum to s, where the
largest such group has M, it is 1 + b · (s − n·μ) / M / (1 + μ). Where the mean is at most μ no such game is favourable:
the capital is a nonnegative supermartingale that begins at 1. So the chance that it ever reaches 2/α is α/2 at most,
however often one looks and whenever one stops (Ville, 1939). Several b are played side by side, each with an equal
share of the capital, since nobody knows the best one before.

The capital falls as μ rises. So the bounds of the mean are those μ at which either game has 2/α, and a bound excludes a
value exactly where the game against that value is won: the interval and the claims cannot disagree.

Source: I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", Journal of the Royal
Statistical Society B 86 (2024), 1–27, arXiv:2010.09686, sections 4 and B.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import exp, log
from typing import Literal

from msgspec import Struct, field

Claim = Literal["better", "worse", "non-inferior"]

Drawn = tuple[float, float]
"""Of one bet: the sum of its differences, and how many cases it is of, both divided by the most cases of any."""

PARTS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8)
"""Of the capital, that are put on each case: small ones win of small differences, large ones of large differences."""

DIGITS = 12
"""Of a difference; those that are alike but for rounding are one."""

_HALVINGS = 50


def evidence_above(differences: Mapping[Drawn, int], null: float) -> float:
    """The capital of a bet against "the mean is at most `null`": 1 for no evidence, 2/α and more for enough.

    Args:
        differences: what was drawn → how often.
        null: above −1, below 1.
    """
    capitals = [sum(count * log(_factor(part, one, null)) for one, count in differences.items()) for part in PARTS]
    return sum(exp(min(capital, 700.0)) for capital in capitals) / len(PARTS)


def _factor(part: float, drawn: Drawn, null: float) -> float:
    total, weight = drawn
    return 1 + part * (total - weight * null) / (1 + null)


def confidence_bounds(low: Mapping[Drawn, int], high: Mapping[Drawn, int], alpha: float) -> tuple[float, float]:
    """Bounds of a mean difference that hold at all looks at once, both together with a chance of 1 − `alpha` at least.

    Args:
        low: the differences at their worst, where some are known within bounds only.
        high: the same ones at their best.
        alpha: inside 0..1.
    """
    mirrored = {(-total, weight): count for (total, weight), count in high.items()}
    return _lower_bound(low, alpha / 2), 0.0 - _lower_bound(mirrored, alpha / 2)


def mean_of(differences: Mapping[Drawn, int]) -> float:
    """The mean difference of the cases that were drawn; 0 where there were none."""
    cases = sum(weight * count for (_, weight), count in differences.items())
    return sum(total * count for (total, _), count in differences.items()) / cases if cases else 0.0


def _lower_bound(differences: Mapping[Drawn, int], alpha: float) -> float:
    below, above = -1.0, mean_of(differences) if differences else -1.0
    for _ in range(_HALVINGS if above > below else 0):
        middle = (below + above) / 2
        if evidence_above(differences, middle) * alpha >= 1:
            below = middle
        else:
            above = middle
    return below


class PairedBets(Struct):
    """Paired differences in the order in which cases were drawn, and what they show at the latest look.

    With a margin of 0 the mean is claimed to be above 0 (`better`) or below it (`worse`). With another, `better` is
    above +margin, `worse` below −margin, and `non-inferior` above −margin. The first claim stays: the chance that it is
    wrong is `alpha` at most, whatever the mean truly is.

    Attributes:
        alpha: inside 0..1.
        margin: 0..1; the largest loss that does not matter.
        claim: the first one that was shown; None: nothing yet.
        drawn: how many bets there were when it was, or so far.
        low, high: what was drawn, at its worst and at its best, and how often.
    """

    alpha: float = 0.05
    margin: float = 0.0
    claim: Claim | None = None
    drawn: int = 0
    low: Counter[Drawn] = field(default_factory=Counter)
    high: Counter[Drawn] = field(default_factory=Counter)
    _better: list[float] = field(default_factory=lambda: [0.0] * len(PARTS))
    _worse: list[float] = field(default_factory=lambda: [0.0] * len(PARTS))
    _spared: list[float] = field(default_factory=lambda: [0.0] * len(PARTS))

    def add(self, low: float, high: float | None = None, weight: float = 1.0) -> Claim | None:
        """One more difference, of the case that was drawn next; what is shown now.

        A difference that is not known, since something errored, is given by its bounds: no claim leans on the better of
        them. What comes after a claim is passed over.

        Args:
            low: candidate less base, −weight..weight; at its worst.
            high: at its best; None: it is known.
            weight: of cases that are drawn together, how many there are, as a part of the most that any group has.
        """
        if self.claim is not None:
            return self.claim
        worst, best = (round(low, DIGITS), weight), (round(low if high is None else high, DIGITS), weight)
        self.drawn += 1
        self.low[worst] += 1
        self.high[best] += 1
        _bet(self._better, worst, self.margin)
        _bet(self._worse, (-best[0], weight), self.margin)
        if self.margin:
            _bet(self._spared, worst, -self.margin)
        self.claim = self._shown()
        return self.claim

    def _shown(self) -> Claim | None:
        enough = log(2 / self.alpha) + log(len(PARTS))
        if _total(self._worse) >= enough:
            return "worse"
        if _total(self._better) >= enough:
            return "better"
        return "non-inferior" if self.margin and _total(self._spared) >= enough else None

    @property
    def bounds(self) -> tuple[float, float]:
        """Of the mean difference: right at all looks with a chance of 1 − alpha at least."""
        return confidence_bounds(self.low, self.high, self.alpha)


def _bet(capitals: list[float], drawn: Drawn, null: float) -> None:
    for place, part in enumerate(PARTS):
        capitals[place] += log(_factor(part, drawn, null))


def _total(capitals: list[float]) -> float:
    """The logarithm of the sum."""
    largest = max(capitals)
    return largest + log(sum(exp(one - largest) for one in capitals))
