"""Several samples of each case of a run: rates, flaky cases, pass@k and pass^k (SPEC section 10).

Imported where a case has several: most runs do not pay for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import comb, fsum
from typing import NamedTuple

from msgspec import Struct, field

from agentv.model.run.matrix import Interval, MeasuredShare
from agentv.model.run.summary import SampledCase, Samples
from agentv.stats.intervals.design_effect import Estimate, Sums, estimated_mean, estimated_rate
from agentv.stats.intervals.proportion import USUAL, wilson_interval


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


class SamplesTally(Struct):
    """Takes in cases, and holds a bounded number of them."""

    _pairs: Counter[tuple[int, int]] = field(default_factory=Counter)
    _clusters: dict[int, tuple[tuple[int, int], ...]] = {}
    _listed: list[CaseSamples] = []

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


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """pass@k, the chance that at least one of k samples passes, 0..1: 1 − C(samples − passed, k) / C(samples, k).

    Unbiased, unlike 1 − (1 − rate)^k, which says too little. Over several cases it is the mean of theirs.

    Source: M. Chen et al., "Evaluating large language models trained on code" (2021), arXiv:2107.03374, equation 1.

    Args:
        samples: of one case, that were judged.
        passed: those that passed.
        k: 1..samples.

    Raises:
        ValueError: no such samples.
    """
    return 1 - all_fail(samples, passed, k)


def pass_hat_k(samples: int, passed: int, k: int) -> float:
    """pass^k, the chance that all of k samples pass, 0..1: C(passed, k) / C(samples, k).

    Unbiased, unlike rate^k, which says too much. Over several cases it is the mean of theirs.

    Source: S. Yao et al., "τ-bench: a benchmark for tool-agent-user interaction in real-world domains" (2024),
    arXiv:2406.12045, section 3.

    Args:
        samples: of one case, that were judged.
        passed: those that passed.
        k: 1..samples.

    Raises:
        ValueError: no such samples.
    """
    return all_fail(samples, samples - passed, k)


def at_k_interval(samples: int, passed: int, k: int) -> tuple[float, float]:
    """The interval of one case's pass@k: (low, high), with the estimate in it.

    Samples of one case are independent, so that its rate has Wilson's interval; pass@k is 1 − (1 − rate)^k, which only
    grows, so that the ends carry over with their coverage. The unbiased estimate is 1 wherever fewer than k samples
    failed, and lies above that; the interval is then stretched up to it.
    """
    low, high = wilson_interval(passed, samples)
    found = pass_at_k(samples, passed, k)
    return min(1 - (1 - low) ** k, found), max(1 - (1 - high) ** k, found)


def hat_k_interval(samples: int, passed: int, k: int) -> tuple[float, float]:
    """The interval of one case's pass^k, rate^k, likewise; where fewer than k passed it goes down to the estimate."""
    low, high = at_k_interval(samples, samples - passed, k)
    return 1 - high, 1 - low


def tells_at_k(samples: int, passed: int, k: int) -> bool:
    """Whether the samples determine pass@k: at least k failed. Otherwise the estimate is 1 for any rate."""
    return samples - passed >= k


def all_fail(samples: int, passed: int, k: int) -> float:
    """The chance that k samples, drawn out of these without putting one back, all failed.

    Raises:
        ValueError: no such samples.
    """
    if not 0 <= passed <= samples or not 1 <= k <= samples:
        raise ValueError(f"no samples: {passed} of {samples} passed, k is {k}")
    return comb(samples - passed, k) / comb(samples, k)


def usual_k(samples: int) -> tuple[int, ...]:
    """The values of k to report for this number of samples: 1, 2, 4, 8, … and all of them."""
    powers = (1 << power for power in range(samples.bit_length()))
    return tuple(sorted({*powers, samples})) if samples > 0 else ()


def is_flaky(samples: int, passed: int) -> bool:
    """Whether samples of one case disagree: some passed, some failed."""
    return 0 < passed < samples


def disagreement(samples: int, passed: int) -> float:
    """The chance that two samples of the case disagree: 2 · passed · failed / (samples · (samples − 1)), 0..1.

    The unbiased estimator of 2p(1 − p), which is 0 for a case that always ends alike and 0.5 for a coin. Unlike the
    share of flaky cases it does not grow with the number of samples.

    Source: C. Gini's index of diversity, in the unbiased form of E. H. Simpson, "Measurement of diversity", Nature 163
    (1949), 688, for two kinds.

    Raises:
        ValueError: fewer than two samples, or more passed than there are.
    """
    if samples < 2 or not 0 <= passed <= samples:
        raise ValueError(f"no disagreement: {passed} of {samples} passed")
    return 2 * passed * (samples - passed) / (samples * (samples - 1))


def mean_disagreement(cases: Sequence[tuple[int, int]], confidence: float = USUAL) -> MeasuredShare | None:
    """The chance that two samples of a case disagree, over all cases, with the interval of a mean of scores.

    None where no case has two samples.

    Args:
        cases: of each how many samples were judged, and how many of them passed.
        confidence: of the interval, inside 0..1.
    """
    shares = Counter((1, disagreement(samples, passed)) for samples, passed in cases if samples > 1)
    if not shares:
        return None
    found = estimated_mean(shares, confidence)
    return MeasuredShare(found.mean, found.interval or (0.0, 1.0))
