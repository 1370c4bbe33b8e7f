"""Totals over the samples of a case: pass rate and flakiness."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from agentv.model.run.group_totals import Interval


class SampledCase(Struct, frozen=True):
    """One case with several samples on one target, at least one of which was graded.

    Attributes:
        judged, passed: numbers of samples; errored and skipped ones are not included.
        pass_rate_interval: Wilson's, at 95%.
        flaky: some samples passed, and some failed.
        pass_at_k, pass_hat_k: k → probability that at least one of k samples passes, and that all do. If fewer than k
            samples failed (or passed), the estimate is 1 (or 0) for any rate: then only the interval is informative.
        pass_at_k_interval, pass_hat_k_interval: k → their 95% intervals, Wilson's of the rate transformed.
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


class Samples(Struct, frozen=True):
    """Totals of the cases with several samples, without those whose samples may end early.

    Attributes:
        cases: number of cases with a graded sample.
        compared: number of cases with at least two, so that they can disagree.
        flaky: number of cases whose samples disagree.
        flaky_share_interval: 95% interval of flaky among compared, by the clusters of the cases; None if
            nothing was compared, or if all are one cluster.
        always_passed: number of graded samples → number of cases with so many that passed all of them.
        pass_at_k, pass_hat_k: k → mean over the complete cases; k goes up to their number of samples.
        pass_at_k_interval, pass_hat_k_interval: k → their 95% intervals over the clusters of the cases; k is missing
            if all cases are one cluster.
        by_case: flaky ones first, then by pass rate, the lowest first; a limited number.
        omitted: number of further cases.
        complete: number of cases with as many graded samples as most cases have, or more; None: an earlier agentv wrote
            it.
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
    complete: int | None = None
