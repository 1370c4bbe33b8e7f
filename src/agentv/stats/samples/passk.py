"""Several samples of one case: the chance that one of k would pass, that all k would, and how far they disagree.

Plain Python: every run with `repeat` reckons them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb

from agentv.model.run.matrix import MeasuredShare
from agentv.stats.intervals.design_effect import estimated_mean
from agentv.stats.intervals.proportion import USUAL, wilson_interval


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


def at_k_interval(samples: int, passed: int, k: int, level: float = USUAL) -> tuple[float, float]:
    """The interval of one case's pass@k: (low, high), with the estimate in it.

    Samples of one case are independent, so that its rate has Wilson's interval; pass@k is 1 − (1 − rate)^k, which only
    grows, so that the ends carry over with their coverage. The unbiased estimate is 1 wherever fewer than k samples
    failed, and lies above that; the interval is then stretched up to it.
    """
    low, high = wilson_interval(passed, samples, level)
    found = pass_at_k(samples, passed, k)
    return min(1 - (1 - low) ** k, found), max(1 - (1 - high) ** k, found)


def hat_k_interval(samples: int, passed: int, k: int, level: float = USUAL) -> tuple[float, float]:
    """The interval of one case's pass^k, rate^k, likewise; where fewer than k passed it goes down to the estimate."""
    low, high = at_k_interval(samples, samples - passed, k, level)
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
