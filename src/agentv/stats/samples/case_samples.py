"""Statistics of a run with several samples of each case: rates, flaky cases, pass@k and pass^k (SPEC section 10).

Imported only if a case has several samples, since most runs do not need it.
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
    """Numbers of judged and passed samples of one case on one target."""

    test_id: str
    suite: str
    target: str
    prompt_id: str | None
    judged: int
    passed: int


Chance = Callable[[int, int, int], float]
"""A function of the number of judged samples, the number that passed, and k: pass@k or pass^k."""

LISTED = 1000
"""Cases that the summary lists one by one."""


class SamplesTally(Struct):
    """Totals over the samples of cases. Only a bounded number of cases is kept."""

    _pairs: Counter[tuple[int, int]] = field(default_factory=Counter)
    _clusters: dict[int, list[tuple[int, int]]] = {}
    _listed: list[CaseSamples] = []

    def add(self, case: CaseSamples, cluster: int) -> None:
        """Add a case with its cluster; cases without graded samples are ignored."""
        if not case.judged:
            return
        pair = (case.judged, case.passed)
        self._pairs[pair] += 1
        self._clusters.setdefault(cluster, []).append(pair)
        self._listed.append(case)
        if len(self._listed) > 2 * LISTED:
            self._drop_excess()

    def samples(self) -> Samples | None:
        """The totals of the cases, or None if none exist."""
        if not self._pairs:
            return None
        self._drop_excess()
        kinds = Counter(tuple(sorted(pairs)) for pairs in self._clusters.values())
        flaky = _mean(kinds, lambda pair: float(is_flaky(*pair)) if pair[0] > 1 else None, estimated_rate)
        cases = self._pairs.total()
        full = self._usual_number()
        complete = sum(number for (judged, _), number in self._pairs.items() if judged >= full)
        at: dict[int, Estimate | None] = {k: _mean(kinds, partial(_chance, pass_at_k, k, full)) for k in usual_k(full)}
        all_pass = {k: _mean(kinds, partial(_chance, pass_hat_k, k, full)) for k in usual_k(full)}
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
        """The most frequent number of graded samples per case; the larger one if two are equally frequent."""
        cases: Counter[int] = Counter()
        for (judged, _), number in self._pairs.items():
            cases[judged] += number
        return max(cases, key=lambda judged: (cases[judged], judged))

    def _drop_excess(self) -> None:
        self._listed.sort(key=_rank)
        del self._listed[LISTED:]


Kinds = Mapping[tuple[tuple[int, int], ...], int]
"""The (judged, passed) counts of the cases of a cluster → number of such clusters."""


def _mean(
    kinds: Kinds,
    value: Callable[[tuple[int, int]], float | None],
    estimated: Callable[[Sums], Estimate] = estimated_mean,
) -> Estimate | None:
    """The mean of `value` over the cases that have one, or None if no case has."""
    sums: Counter[tuple[int, float]] = Counter()
    for pairs, number in kinds.items():
        found = [one for pair in pairs if (one := value(pair)) is not None]
        if found:
            sums[len(found), fsum(found)] += number
    return estimated(sums) if sums else None


def _rate_of_samples(kinds: Kinds) -> Estimate | None:
    """pass@1 (the pass rate) with its interval, or None if cases differ in their number of samples."""
    if len({judged for pairs in kinds for judged, _ in pairs}) > 1:
        return None
    sums: Counter[tuple[int, float]] = Counter()
    for pairs, number in kinds.items():
        sums[sum(judged for judged, _ in pairs), sum(passed for _, passed in pairs)] += number
    return estimated_rate(sums)


def _chance(chance: Chance, k: int, full: int, pair: tuple[int, int]) -> float | None:
    """pass@k or pass^k of a complete case, so that the means for every k are over the same cases; None otherwise."""
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
    """Sort key: flaky cases first, then by pass rate, lowest first, then by name."""
    named = (case.suite, case.test_id, case.prompt_id or "", case.target)
    return (not is_flaky(case.judged, case.passed), case.passed / case.judged, *named)


def _sampled(case: CaseSamples) -> SampledCase:
    return SampledCase(
        *case,
        pass_rate=case.passed / case.judged,
        pass_rate_interval=wilson_interval(case.passed, case.judged),
        flaky=is_flaky(case.judged, case.passed),
        pass_at_k=_chances(case, pass_at_k),
        pass_hat_k=_chances(case, pass_hat_k),
        pass_at_k_interval={k: at_k_interval(case.judged, case.passed, k) for k in usual_k(case.judged)},
        pass_hat_k_interval={k: hat_k_interval(case.judged, case.passed, k) for k in usual_k(case.judged)},
    )


def _chances(case: CaseSamples, chance: Chance) -> Mapping[int, float]:
    return {k: chance(case.judged, case.passed, k) for k in usual_k(case.judged)}


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """pass@k, the probability that at least one of k samples passes: 1 − C(samples − passed, k) / C(samples, k).

    Unbiased, unlike 1 − (1 − rate)^k, which is too low. For several cases, take the mean.

    Source: M. Chen et al., "Evaluating large language models trained on code" (2021), arXiv:2107.03374, equation 1.

    Args:
        samples: judged samples of one case.
        passed: samples that passed.
        k: 1..samples.

    Raises:
        ValueError: the numbers do not fit together.
    """
    return 1 - all_fail(samples, passed, k)


def pass_hat_k(samples: int, passed: int, k: int) -> float:
    """pass^k, the probability that all of k samples pass: C(passed, k) / C(samples, k).

    Unbiased, unlike rate^k, which is too high. For several cases, take the mean.

    Source: S. Yao et al., "τ-bench: a benchmark for tool-agent-user interaction in real-world domains" (2024),
    arXiv:2406.12045, section 3.

    Args:
        samples: judged samples of one case.
        passed: samples that passed.
        k: 1..samples.

    Raises:
        ValueError: the numbers do not fit together.
    """
    return all_fail(samples, samples - passed, k)


def at_k_interval(samples: int, passed: int, k: int) -> tuple[float, float]:
    """Confidence interval of one case's pass@k: (low, high), always containing the estimate.

    Samples of one case are independent, so its rate has Wilson's interval. pass@k is 1 − (1 − rate)^k, which is
    monotonic, so the transformed ends keep their coverage. The unbiased estimate is 1 if fewer than k samples failed,
    which is above that interval; the interval is then extended to it.
    """
    low, high = wilson_interval(passed, samples)
    found = pass_at_k(samples, passed, k)
    return min(1 - (1 - low) ** k, found), max(1 - (1 - high) ** k, found)


def hat_k_interval(samples: int, passed: int, k: int) -> tuple[float, float]:
    """Confidence interval of one case's pass^k, like `at_k_interval`; extended to 0 if fewer than k samples passed."""
    low, high = at_k_interval(samples, samples - passed, k)
    return 1 - high, 1 - low


def tells_at_k(samples: int, passed: int, k: int) -> bool:
    """Whether the samples determine pass@k: at least k failed. Otherwise the estimate is 1 for any rate."""
    return samples - passed >= k


def all_fail(samples: int, passed: int, k: int) -> float:
    """Probability that k samples, drawn from these without replacement, all failed.

    Raises:
        ValueError: the numbers do not fit together.
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
    """Probability that two samples of the case disagree: 2 · passed · failed / (samples · (samples − 1)).

    It is the unbiased estimator of 2p(1 − p), which is 0 for a case that always has the same result and 0.5 for a coin
    toss. Unlike the share of flaky cases, it does not grow with the number of samples.

    Source: C. Gini's index of diversity, in the unbiased form of E. H. Simpson, "Measurement of diversity", Nature 163
    (1949), 688, for two kinds.

    Raises:
        ValueError: fewer than two samples, or more passed than there are.
    """
    if samples < 2 or not 0 <= passed <= samples:
        raise ValueError(f"no disagreement: {passed} of {samples} passed")
    return 2 * passed * (samples - passed) / (samples * (samples - 1))


def mean_disagreement(cases: Sequence[tuple[int, int]], confidence: float = USUAL) -> MeasuredShare | None:
    """Mean probability that two samples of a case disagree, with its interval; None if no case has two samples.

    Args:
        cases: numbers of judged and of passed samples of each case.
        confidence: confidence level of the interval, strictly between 0 and 1.
    """
    shares = Counter((1, disagreement(samples, passed)) for samples, passed in cases if samples > 1)
    if not shares:
        return None
    found = estimated_mean(shares, confidence)
    return MeasuredShare(found.mean, found.interval or (0.0, 1.0))
