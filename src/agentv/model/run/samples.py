"""Totals over the samples of a case: pass rate and flakiness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from agentv.lazy_dataclass import dataclass

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class SampledCase:
    """One case on one target, of several samples of which one was judged at least.

    Attributes:
        judged, passed: samples; errored and skipped ones are in neither.
        pass_rate_interval: Wilson's, at 95 %.
        flaky: some samples passed, and some failed.
        pass_at_k, pass_hat_k: k → the chance that one of k samples passes, and that all of them do. Where fewer than k
            samples failed (or passed), that estimate is 1 (or 0) whatever the chance is: only the interval tells then.
        pass_at_k_interval, pass_hat_k_interval: k → their 95 % intervals, Wilson's of the rate carried over.
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
    pass_at_k_interval: Mapping[int, Interval] = field(default_factory=dict)
    pass_hat_k_interval: Mapping[int, Interval] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Samples:
    """Totals of the cases with several samples, without those whose samples may end early.

    Attributes:
        cases: those of which a sample was judged.
        compared: those of which two were, so that they can disagree.
        flaky: those that did.
        flaky_share_interval: the 95 % interval of flaky among compared, by the clusters of the cases; None where
            nothing was compared, and where all are one cluster.
        always_passed: number of judged samples → how many cases had so many, and passed all of them.
        pass_at_k, pass_hat_k: k → the mean over all these cases; k goes up to what the least sampled of them has.
        pass_at_k_interval, pass_hat_k_interval: k → their 95 % intervals over the clusters of the cases; k is missing
            where all cases are one cluster.
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
    pass_at_k_interval: Mapping[int, Interval] = field(default_factory=dict)
    pass_hat_k_interval: Mapping[int, Interval] = field(default_factory=dict)
