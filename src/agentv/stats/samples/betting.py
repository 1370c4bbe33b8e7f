"""Sequential test of the mean of paired differences: evidence and bounds that are valid at every look.

A bettor bets against "the mean is at most μ". Before each case, a fraction b of the capital is bet on a difference
above μ. The capital is multiplied by

    1 + b · (d − μ) / (1 + μ)        for a difference d of −1..1, so that the factor is 0 or more

Dependent cases are drawn together and form one bet: for n cases whose differences sum to s, where the largest such
group has M cases, the factor is 1 + b · (s − n·μ) / M / (1 + μ). If the mean is at most μ, no such bet is favourable,
and the capital is a nonnegative supermartingale that begins at 1. So the probability that it ever reaches 2/α is at
most α/2, however often one looks and whenever one stops (Ville, 1939). Several values of b are bet in parallel, each
with an equal share of the capital, since the best one is not known in advance.

The capital falls as μ rises. The bounds of the mean are the values of μ at which the capital of either bet is 2/α. So a
bound excludes a value exactly if the bet against that value is won: the interval and the claims cannot disagree.

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
"""One bet: the sum of its differences and its number of cases, both divided by the largest number of any bet."""

PARTS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8)
"""Fractions of the capital to bet on each case: small ones gain from small differences, large ones from large ones."""

DIGITS = 12
"""Digits to which differences are rounded, so that equal ones are counted together."""

_HALVINGS = 50


def evidence_above(differences: Mapping[Drawn, int], null: float) -> float:
    """The capital of a bet against "the mean is at most `null`": 1 is no evidence, 2/α or more is enough.

    Args:
        differences: bet → how often it was drawn.
        null: strictly between −1 and 1.
    """
    capitals = [sum(count * log(_factor(part, one, null)) for one, count in differences.items()) for part in PARTS]
    return sum(exp(min(capital, 700.0)) for capital in capitals) / len(PARTS)


def _factor(part: float, drawn: Drawn, null: float) -> float:
    total, weight = drawn
    return 1 + part * (total - weight * null) / (1 + null)


def confidence_bounds(low: Mapping[Drawn, int], high: Mapping[Drawn, int], alpha: float) -> tuple[float, float]:
    """Bounds of a mean difference that hold at all looks together with a probability of at least 1 − `alpha`.

    Args:
        low: the differences in their worst case, if some are only known within bounds.
        high: the same differences in their best case.
        alpha: error rate, strictly between 0 and 1.
    """
    mirrored = {(-total, weight): count for (total, weight), count in high.items()}
    return _lower_bound(low, alpha / 2), 0.0 - _lower_bound(mirrored, alpha / 2)


def mean_of(differences: Mapping[Drawn, int]) -> float:
    """The mean difference of the drawn cases, or 0 if none exist."""
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
    """A sequential test of paired differences, in the order in which their cases are drawn.

    With a margin of 0, the claims are that the mean is above 0 (`better`) or below it (`worse`). Otherwise, `better` is
    above +margin, `worse` below −margin, and `non-inferior` above −margin. The first claim is final: the probability
    that it is wrong is at most `alpha`, whatever the true mean is.

    Attributes:
        alpha: error rate, strictly between 0 and 1.
        margin: largest loss that does not matter, 0..1.
        claim: the first claim that was shown, or None if none exists yet.
        drawn: number of bets until the claim, or so far.
        low, high: how often each bet was drawn, in the worst and in the best case.
    """

    alpha: float = 0.05
    margin: float = 0.0
    claim: Claim | None = None
    drawn: int = 0
    low: Counter[Drawn] = field(default_factory=Counter)
    high: Counter[Drawn] = field(default_factory=Counter)
    _better: list[float] = field(default_factory=lambda: [0.0] * len(PARTS))
    _worse: list[float] = field(default_factory=lambda: [0.0] * len(PARTS))
    _not_worse: list[float] = field(default_factory=lambda: [0.0] * len(PARTS))

    def add(self, low: float, high: float | None = None, weight: float = 1.0) -> Claim | None:
        """Add the difference of the next case, and return the claim so far.

        A difference that is unknown because of an error is given by its bounds; each claim uses the less favourable
        one. Differences after a claim are ignored.

        Args:
            low: candidate minus base in the worst case, −weight..weight.
            high: candidate minus base in the best case, or None if the difference is known.
            weight: number of cases drawn together, divided by the size of the largest group.
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
            _bet(self._not_worse, worst, -self.margin)
        self.claim = self._shown()
        return self.claim

    def _shown(self) -> Claim | None:
        enough = log(2 / self.alpha) + log(len(PARTS))
        if _total(self._worse) >= enough:
            return "worse"
        if _total(self._better) >= enough:
            return "better"
        return "non-inferior" if self.margin and _total(self._not_worse) >= enough else None

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds of the mean difference that hold at all looks with a probability of at least 1 − alpha."""
        return confidence_bounds(self.low, self.high, self.alpha)


def _bet(capitals: list[float], drawn: Drawn, null: float) -> None:
    for place, part in enumerate(PARTS):
        capitals[place] += log(_factor(part, drawn, null))


def _total(capitals: list[float]) -> float:
    """Logarithm of the summed capital, from the logarithms of its parts."""
    largest = max(capitals)
    return largest + log(sum(exp(one - largest) for one in capitals))
