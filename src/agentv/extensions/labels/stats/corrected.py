"""Pass rates of a run as people would give them, from the verdicts of a judge and the labels of a few answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentv.extensions.labels.stats.posterior import (
    DRAWS,
    LEVEL,
    Counted,
    Estimated,
    JudgeCounts,
    JudgeDraws,
    estimated,
)
from agentv.extensions.labels.stats.strata import even_sizes

if TYPE_CHECKING:
    from agentv.extensions.labels.stats.posterior import Draws

NARROW = 0.05
"""How far from the rate the ends of an interval may be that is narrow enough."""

FORECAST = 8000
"""Draws of a forecast, which need not be as exact as an interval."""

_UNUSABLE = 0.025
"""Share of draws in which the judge is no better than chance, from which nothing can be corrected by it."""


def corrected_rate(counts: JudgeCounts, seed: int = 0, level: float = LEVEL, draws: int = DRAWS) -> Estimated:
    """The pass rate by people, where the labelled answers are a random part of the run's.

    Post-stratified by the judge's verdict: labels need only be random among the answers that the judge passed, and
    among those that it failed. By simulation (`benchmarks/corrected_rates.py`) it covers what it promises, also at high
    pass rates and with 20 labels, where normal approximations such as prediction-powered inference do not.
    """
    return estimated(JudgeDraws.of(counts, seed, draws).truth, level)


def transferred_rate(
    calibration: JudgeCounts, verdicts: Counted, seed: int = 0, level: float = LEVEL, draws: int = DRAWS
) -> Estimated | None:
    """The pass rate by people, where the labels are of another run: it assumes that the judge errs as often in both.

    The rate is (p + TNR − 1) / (TPR + TNR − 1), p being the judge's pass rate in this run, with the errors of p, TPR
    and TNR. Sources: W. J. Rogan, B. Gladen, "Estimating prevalence from the results of a screening test", American
    Journal of Epidemiology 107 (1978), 71–76; C. Lee et al., "How to correctly report LLM-as-a-judge evaluations",
    arXiv 2511.21140.

    Args:
        calibration: the judge in the run with labels.
        verdicts: of the judge in this run.
        seed: of the draws.
        level: the confidence.
        draws: how many.

    Returns:
        None: the labels do not show that the judge is better than chance.
    """
    truth = transferred_draws(calibration, verdicts, seed, draws)
    return None if truth is None else estimated(truth, level)


def transferred_draws(calibration: JudgeCounts, verdicts: Counted, seed: int = 0, draws: int = DRAWS) -> Draws | None:
    """The draws that `transferred_rate` describes; None as there."""
    import numpy as np

    judge = JudgeDraws.of(calibration, seed, draws)
    chance = np.random.default_rng([seed, 1])
    rate = chance.beta(0.5 + verdicts.passed, 0.5 + verdicts.failed, draws)
    better = judge.true_positives + judge.true_negatives - 1
    usable = better > 0
    if 1 - usable.mean() > _UNUSABLE:
        return None
    truth = (rate[usable] + judge.true_negatives[usable] - 1) / better[usable]
    return np.clip(truth, 0, 1)


@dataclass(frozen=True, slots=True)
class MoreLabels:
    """How many more labels narrow the interval of a corrected rate.

    Attributes:
        labels: how many more; 0: it is narrow enough.
        reach: half the width that the interval will then have.
        enough: False: all answers of the run labelled do not narrow it to the goal, since the run is too short.
    """

    labels: int
    reach: float
    enough: bool = True


def more_labels(counts: JudgeCounts, left: tuple[int, int], goal: float = NARROW, seed: int = 0) -> MoreLabels:
    """How many more labels, drawn evenly from both verdicts, narrow the corrected rate's interval to ±goal.

    It is assumed that people go on as they began. The number is found by bisection to 2%, since it is a forecast.

    Args:
        counts: what is known so far.
        left: answers without a label, that the judge passed and that it failed.
        goal: half the width of the interval.
        seed: of the draws.
    """

    def reach(more: int) -> float:
        draws = FORECAST if more else DRAWS
        return estimated(JudgeDraws.of(_with_more(counts, left, more), seed, draws).truth).reach

    if (now := reach(0)) <= goal:
        return MoreLabels(0, now)
    low, high = 0, sum(left)
    if (then := reach(high)) > goal:
        return MoreLabels(high, then, enough=False)
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        found = reach(middle)
        if found <= goal:
            high, then = middle, found
        else:
            low = middle
    return MoreLabels(high, then)


def _with_more(counts: JudgeCounts, left: tuple[int, int], more: int) -> JudgeCounts:
    split = even_sizes(more, left)
    strata = (counts.of_passed, counts.of_failed)
    grown = [_grown(found, added, first=first) for found, added, first in zip(strata, split, (1.0, 0.0), strict=True)]
    return JudgeCounts(grown[0], grown[1], counts.verdicts)


def _grown(found: Counted, more: int, *, first: float) -> Counted:
    """The counts with more labels like those so far; where there are none, people are taken to agree with the judge."""
    share = (found.passed + 0.5 * first) / (found.total + 0.5)
    return Counted(found.passed + share * more, found.failed + (1 - share) * more)
