"""Several samples of each case of a run: rates, flaky cases, pass@k and pass^k (SPEC section 10).

Imported where a case has several: most runs do not pay for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from math import fsum
from typing import NamedTuple

from agentv.model.run.matrix import Interval
from agentv.model.run.summary import SampledCase, Samples
from agentv.stats.intervals.design_effect import Estimate, Sums, estimated_mean, estimated_rate
from agentv.stats.intervals.proportion import wilson_interval
from agentv.stats.samples.passk import at_k_interval, hat_k_interval, is_flaky, pass_at_k, pass_hat_k, usual_k


class CaseSamples(NamedTuple):
    """Of one case on one target: how many samples were judged, and how many of them passed."""

    test_id: str
    suite: str
    target: str
    prompt_id: str | None
    judged: int
    passed: int


Chance = Callable[[int, int, int], float]
"""Of so many judged samples and so many that passed, the chance at k."""

LISTED = 1000
"""Cases that the summary holds one by one."""


class SamplesTally:
    """Takes in cases, and holds a bounded number of them."""

    def __init__(self) -> None:
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._clusters: dict[int, tuple[tuple[int, int], ...]] = {}
        self._listed: list[CaseSamples] = []

    def add(self, case: CaseSamples, cluster: int) -> None:
        """Add a case with its cluster; one without graded samples is skipped."""
        if not case.judged:
            return
        pair = (case.judged, case.passed)
        self._pairs[pair] += 1
        self._clusters[cluster] = (*self._clusters.get(cluster, ()), pair)
        self._listed.append(case)
        if len(self._listed) > 2 * LISTED:
            self._cut()

    def samples(self) -> Samples | None:
        """The totals of repeated cases; None if there was none."""
        if not self._pairs:
            return None
        self._cut()
        kinds = Counter(tuple(sorted(pairs)) for pairs in self._clusters.values())
        flaky = _over(kinds, lambda pair: float(is_flaky(*pair)) if pair[0] > 1 else None, estimated_rate)
        cases = self._pairs.total()
        full = self._usual_number()
        complete = sum(number for (judged, _), number in self._pairs.items() if judged >= full)
        at: dict[int, Estimate | None] = {k: _over(kinds, partial(_chance, pass_at_k, k, full)) for k in usual_k(full)}
        all_pass = {k: _over(kinds, partial(_chance, pass_hat_k, k, full)) for k in usual_k(full)}
        if (rate := _rate_of_samples(kinds)) is not None:
            at[1] = all_pass[1] = rate
        return Samples(
            cases=cases,
            compared=sum(number for (judged, _), number in self._pairs.items() if judged > 1),
            flaky=sum(number for pair, number in self._pairs.items() if is_flaky(*pair)),
            flaky_share_interval=None if flaky is None else flaky.interval,
            always_passed={pair[0]: number for pair, number in sorted(self._pairs.items()) if pair[0] == pair[1]},
            pass_at_k=_means(at),
            pass_hat_k=_means(all_pass),
            pass_at_k_interval=_intervals(at),
            pass_hat_k_interval=_intervals(all_pass),
            by_case=tuple(map(_sampled, self._listed)),
            omitted=cases - len(self._listed),
            complete=complete,
        )

    def _usual_number(self) -> int:
        """The number of graded samples that most cases have; the larger one of two."""
        cases: Counter[int] = Counter()
        for (judged, _), number in self._pairs.items():
            cases[judged] += number
        return max(cases, key=lambda judged: (cases[judged], judged))

    def _cut(self) -> None:
        self._listed.sort(key=_rank)
        del self._listed[LISTED:]


Kinds = Mapping[tuple[tuple[int, int], ...], int]
"""Clusters by what their cases came to, (judged, passed) of each, and how many there are like that."""


def _over(
    kinds: Kinds,
    value: Callable[[tuple[int, int]], float | None],
    estimated: Callable[[Sums], Estimate] = estimated_mean,
) -> Estimate | None:
    """The mean of a value of each case over all of them, where it has one; None where none has."""
    sums: Counter[tuple[int, float]] = Counter()
    for pairs, number in kinds.items():
        found = [one for pair in pairs if (one := value(pair)) is not None]
        if found:
            sums[len(found), fsum(found)] += number
    return estimated(sums) if sums else None


def _rate_of_samples(kinds: Kinds) -> Estimate | None:
    """pass@1 where all cases have as many samples: the pass rate, with its interval. None where they differ."""
    if len({judged for pairs in kinds for judged, _ in pairs}) > 1:
        return None
    sums: Counter[tuple[int, float]] = Counter()
    for pairs, number in kinds.items():
        sums[sum(judged for judged, _ in pairs), sum(passed for _, passed in pairs)] += number
    return estimated_rate(sums)


def _chance(chance: Chance, k: int, full: int, pair: tuple[int, int]) -> float | None:
    """The chance at k of a complete case: means over different cases for each k would not fit together."""
    return chance(*pair, k) if pair[0] >= full else None


def _means(found: Mapping[int, Estimate | None]) -> dict[int, float]:
    return {k: round(one.mean, 12) for k, one in found.items() if one is not None}


def _intervals(found: Mapping[int, Estimate | None]) -> dict[int, Interval]:
    return {
        k: (round(one.interval[0], 9), round(one.interval[1], 9))
        for k, one in found.items()
        if one is not None and one.interval is not None
    }


def _rank(case: CaseSamples) -> tuple[object, ...]:
    """Flaky ones come first, then the worst; what is alike in that by its name, whatever ended first."""
    named = (case.suite, case.test_id, case.prompt_id or "", case.target)
    return (not is_flaky(case.judged, case.passed), case.passed / case.judged, *named)


def _sampled(case: CaseSamples) -> SampledCase:
    return SampledCase(
        *case,
        pass_rate=case.passed / case.judged,
        pass_rate_interval=wilson_interval(case.passed, case.judged),
        flaky=is_flaky(case.judged, case.passed),
        pass_at_k=_of_case(case, pass_at_k),
        pass_hat_k=_of_case(case, pass_hat_k),
        pass_at_k_interval={k: at_k_interval(case.judged, case.passed, k) for k in usual_k(case.judged)},
        pass_hat_k_interval={k: hat_k_interval(case.judged, case.passed, k) for k in usual_k(case.judged)},
    )


def _of_case(case: CaseSamples, chance: Chance) -> Mapping[int, float]:
    return {k: chance(case.judged, case.passed, k) for k in usual_k(case.judged)}
