"""Several samples of one case: the chance that one of k would pass, and that all k would.

Plain Python: every run with `repeat` reckons them.
"""

from __future__ import annotations

from math import comb


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


def all_fail(samples: int, passed: int, k: int) -> float:
    """The chance that k samples, drawn out of these without putting one back, all failed.

    Raises:
        ValueError: no such samples.
    """
    if not 0 <= passed <= samples or not 1 <= k <= samples:
        raise ValueError(f"no samples: {passed} of {samples} passed, k is {k}")
    return comb(samples - passed, k) / comb(samples, k)


def usual_k(samples: int) -> tuple[int, ...]:
    """The k that are told of so many samples: 1, 2, 4, 8, … and all of them."""
    powers = (1 << power for power in range(samples.bit_length()))
    return tuple(sorted({*powers, samples})) if samples > 0 else ()
