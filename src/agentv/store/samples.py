"""Several samples of a case, out of rows: rates, flaky cases, pass@k and pass^k (SPEC section 10).

Imported where a case has several: most runs do not pay for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from agentv.model.samples import SampledCase, Samples
from agentv.stats.flakiness import flaky_share, is_flaky
from agentv.stats.passk import pass_at_k, pass_hat_k, usual_k
from agentv.stats.proportion import wilson_interval
from agentv.store.tally import Asked, CaseSamples, counted_once

LISTED = 1000
"""Cases that the summary holds one by one."""


class SamplesTally:
    """Takes in cases, and holds a bounded number of them."""

    def __init__(self) -> None:
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._asked: Counter[Asked] = Counter()
        self._listed: list[CaseSamples] = []

    def add(self, case: CaseSamples) -> None:
        """Take in a case; one of which nothing was judged says nothing."""
        if not case.judged:
            return
        self._pairs[case.judged, case.passed] += 1
        if case.judged > 1:
            self._asked[Asked(case.suite, case.target, case.prompt_id)] += 1
        self._listed.append(case)
        if len(self._listed) > 2 * LISTED:
            self._cut()

    def samples(self) -> Samples | None:
        """What they came to; None where there was none."""
        if not self._pairs:
            return None
        self._cut()
        flaky = flaky_share(self._pairs.elements(), independent=counted_once(self._asked))
        cases = self._pairs.total()
        return Samples(
            cases=cases,
            compared=sum(number for (judged, _), number in self._pairs.items() if judged > 1),
            flaky=sum(number for pair, number in self._pairs.items() if is_flaky(*pair)),
            flaky_share_interval=None if flaky is None else (flaky.low, flaky.high),
            always_passed={pair[0]: number for pair, number in sorted(self._pairs.items()) if pair[0] == pair[1]},
            pass_at_k=self._means(pass_at_k),
            pass_hat_k=self._means(pass_hat_k),
            by_case=tuple(map(_sampled, self._listed)),
            omitted=cases - len(self._listed),
        )

    def _cut(self) -> None:
        self._listed.sort(key=_rank)
        del self._listed[LISTED:]

    def _means(self, chance: Callable[[int, int, int], float]) -> dict[int, float]:
        means = {}
        # over the same cases for every k: means over different ones would not fit together
        for k in usual_k(min(judged for judged, _ in self._pairs)):
            summed = sum(number * chance(*pair, k) for pair, number in sorted(self._pairs.items()))
            means[k] = round(summed / self._pairs.total(), 12)
        return means


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
    )


def _of_case(case: CaseSamples, chance: Callable[[int, int, int], float]) -> Mapping[int, float]:
    return {k: chance(case.judged, case.passed, k) for k in usual_k(case.judged)}
