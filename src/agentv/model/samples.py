"""What several samples of a case came to: how often it passes, and whether it always ends alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class SampledCase:
    """One case on one target, of several samples of which one was judged at least.

    Attributes:
        judged, passed: samples; errored and skipped ones are in neither.
        pass_rate_interval: Wilson's, at 95 %.
        flaky: some samples passed, and some failed.
        pass_at_k, pass_hat_k: k → the chance that one of k samples passes, and that all of them do.
    """

    test_id: str
    suite: str
    target: str
    prompt_id: str | None
    judged: int
    passed: int
    pass_rate: float
    pass_rate_interval: Interval
    flaky: bool
    pass_at_k: Mapping[int, float]
    pass_hat_k: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Samples:
    """What the cases with several samples came to, as many for each as were planned: none whose samples may end early.

    Attributes:
        cases: those of which a sample was judged.
        compared: those of which two were, so that they can disagree.
        flaky: those that did.
        flaky_share_interval: Wilson's, at 95 %, of flaky among compared, each case counted once on however many targets
            and with however many prompts; None where nothing was compared.
        always_passed: number of judged samples → how many cases had so many, and passed all of them.
        pass_at_k, pass_hat_k: k → the mean over all these cases; k goes up to what the least sampled of them has.
        by_case: flaky ones first, then by pass rate, the lowest first; a bounded number.
        omitted: how many more cases there are.
    """

    cases: int
    compared: int
    flaky: int
    flaky_share_interval: Interval | None
    always_passed: Mapping[int, int]
    pass_at_k: Mapping[int, float]
    pass_hat_k: Mapping[int, float]
    by_case: tuple[SampledCase, ...]
    omitted: int = 0
