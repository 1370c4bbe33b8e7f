"""Several samples of one case: the chance that one of k would pass, and that all k would.

Plain Python: every run with `repeat` reckons them.
"""

from __future__ import annotations

from math import comb

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
