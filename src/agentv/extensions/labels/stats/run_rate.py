"""Pass rate of a run by people, where the verdicts of some of its trials depend on a judge and those of others do not.

The run is its parts: trials that checks alone decide, and for each judge the trials that its grade decides. The rate is
the sum over the parts of share × rate. The shares have Jeffreys' prior, as the rate of those decided has; the rate of
a judge's trials is the corrected one (`posterior`), or, by labels of other runs, the transferred one (`corrected`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING

from agentv.extensions.labels.stats.posterior import (
    DRAWS,
    JEFFREYS,
    Counted,
    Draws,
    JudgeCounts,
    JudgedAnswer,
    JudgeDraws,
    Observation,
    counted_within,
    counts_within,
    transferred_draws,
)

if TYPE_CHECKING:
    import numpy as np


_SHARES, _NEXT = 2, 101
"""What keeps the draws of shares and of further judges apart from those of the first judge."""


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """The trials whose verdicts one judge decides.

    Attributes:
        answers: of these trials.
        calibration: the judge in other runs, whose errors are taken to be the same here; None: `answers` have labels.
    """

    answers: Sequence[JudgedAnswer]
    calibration: JudgeCounts | None = None


@dataclass(frozen=True, slots=True)
class RunParts:
    """The trials of a run.

    Attributes:
        judged: those that judges decide; a judge's part has at least one answer.
        decided: those whose verdicts are the same whatever a judge says.
        always_judged: no trial can be decided without a judge, so that there is no share of such.
    """

    judged: Sequence[JudgedPart]
    decided: Sequence[Observation] = field(default=())
    always_judged: bool = False


def run_rate_draws(parts: RunParts, seed: int = 0) -> Draws | None:
    """Draws of the pass rate by people; None: labels of other runs do not show that a judge is better than chance.

    With one judge on which every verdict depends, they are those of `corrected_rate`, or of `transferred_rate`.
    """
    import numpy as np  # only runs with labels need it

    effect = _design_effect(parts)
    rates: list[Draws] = []
    for place, part in enumerate(parts.judged):
        found = _judged_rate(part, effect, seed + _NEXT * place)
        if found is None:
            return None
        rates.append(found)
    if len(rates) == 1 and parts.always_judged:
        return rates[0]
    rates = [np.resize(one, DRAWS) for one in rates]  # where a judge may be worse than chance there are fewer
    chance = np.random.default_rng([seed, _SHARES])
    sizes = [[Observation(True, one.cluster, one.weight) for one in part.answers] for part in parts.judged]
    if not parts.always_judged:
        sizes.append([Observation(True, one.cluster, one.weight) for one in parts.decided])
        rates.append(_beta(counted_within(parts.decided, effect), chance))
    whole = np.zeros(DRAWS)
    left = np.ones(DRAWS)
    for place, rate in enumerate(rates[:-1]):
        rest = [Observation(False, one.cluster, one.weight) for size in sizes[place + 1 :] for one in size]
        share = _beta(counted_within([*sizes[place], *rest], effect), chance)
        whole += left * share * rate
        left *= 1 - share
    return whole + left * rates[-1]


def _judged_rate(part: JudgedPart, effect: float, seed: int) -> Draws | None:
    counts = counts_within(part.answers, effect)
    if part.calibration is not None:
        return transferred_draws(part.calibration, counts.verdicts, seed)
    return JudgeDraws.of(counts, seed).truth


def _beta(found: Counted, chance: np.random.Generator) -> Draws:
    return chance.beta(JEFFREYS + found.passed, JEFFREYS + found.failed, DRAWS)


def _design_effect(parts: RunParts) -> float:
    """How much more the rate varies than that of trials without clusters, by its linearization; at least 1.

    As in `posterior`, with a stratum for each verdict of each judge, and one for the trials that are decided.
    """
    weights = [*(one.weight for part in parts.judged for one in part.answers), *(one.weight for one in parts.decided)]
    found = [*_linearized(parts.judged, fsum(weights)), *((one, float(one.passed), 0.0) for one in parts.decided)]
    if all(one.cluster is None for one, _, _ in found):
        return 1.0
    total = fsum(weights)
    truth = fsum(one.weight * rate for one, rate, _ in found) / total
    summed: dict[Hashable, float] = {}
    alone = 0.0
    for place, (one, rate, label) in enumerate(found):
        influence = one.weight * (rate - truth) / total + label
        cluster = (place,) if one.cluster is None else one.cluster
        summed[cluster] = summed.get(cluster, 0.0) + influence
        alone += influence * influence
    return max(1.0, fsum(one * one for one in summed.values()) / alone) if alone else 1.0


def _linearized(parts: Sequence[JudgedPart], total: float) -> Iterator[tuple[JudgedAnswer | Observation, float, float]]:
    """Each answer with the rate of its stratum, and what its label adds to the error of that."""
    for part in parts:
        for verdict in (True, False):
            stratum = [one for one in part.answers if one.judge is verdict]
            labelled = fsum(one.label_weight for one in stratum if one.person is not None)
            rate = fsum(one.label_weight for one in stratum if one.person) / labelled if labelled else float(verdict)
            share = fsum(one.weight for one in stratum) / total
            for one in stratum:
                person = 0.0 if one.person is None else one.label_weight * share * (one.person - rate) / labelled
                yield one, rate, person
