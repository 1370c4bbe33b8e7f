"""Run the samples of a case one after the other until they decide it or reach its cost limit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.model.run.cases import Sample, sample_of
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.formatting import money
from agentv.model.values.response import Failure

COST_LIMIT = "cost-limit"
"""Code of samples that are not run because earlier ones reached the cost limit."""


class SequentialSampler(Struct):
    """State of the cases whose sampling may end early, including samples of earlier processes of the run.

    Attributes:
        limited: whether some cases have a cost limit, so that the cost of samples is added up.
        spared: number of planned samples that were not needed.
        refused: samples that will not run, with the reason; workers remove and report them.
    """

    limited: bool = False
    spared: int = 0
    refused: deque[tuple[Trial, Failure]] = field(default_factory=deque)
    _spent: dict[str, float] = {}
    _samples: dict[str, list[Sample]] = {}
    _to_come: dict[str, list[Trial]] = {}

    def restore(self, result: TrialResult) -> None:
        """Record a sample of an earlier process. Samples of a case must come in their order."""
        self._spend(result)
        if result.trial.alpha is not None:
            self._samples.setdefault(_case(result.trial), []).append(sample_of(result))

    def undecided(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Return the trials of cases that are not decided yet. Changes no state."""
        if not self._samples:
            return iter(trials)
        from agentv.stats.samples.deciding import rule_of, stopped_by

        def is_undecided(trial: Trial) -> bool:
            samples = self._samples.get(_case(trial)) if trial.alpha is not None else None
            return samples is None or stopped_by(samples, rule_of(trial)) is None

        return filter(is_undecided, trials)

    def firsts(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Yield the trials that may start: only the first of a case's sequential samples; `after` returns the others.

        Args:
            trials: pending trials; samples of a case are consecutive.
        """
        for (case, early), group in groupby(trials, key=lambda trial: (_case(trial), trial.is_sequential)):
            if not early:
                yield from group
                continue
            first, *others = group
            over_limit = self._cost_limit_failure(first)
            if over_limit is not None:
                self.refused.extend((one, over_limit) for one in (first, *others))
                continue
            self._to_come[case] = others
            yield first

    def after(self, result: TrialResult) -> tuple[TrialResult, Trial | None]:
        """Return the result, with the reason if sampling of its case ends here, and the next sample, if any."""
        from agentv.stats.samples.deciding import rule_of, stopped_by

        trial = result.trial
        if not trial.is_sequential:
            return result, None
        case = _case(trial)
        if not result.reused:
            self._spend(result)
        samples = self._samples.setdefault(case, [])
        samples.append(sample_of(result))
        to_come = self._to_come.get(case, [])
        stopped = stopped_by(samples, rule_of(trial))
        over_limit = self._cost_limit_failure(trial) if stopped is None else None
        if stopped is None and to_come and over_limit is None:
            return result, to_come.pop(0)
        if over_limit is None:
            self.spared += len(to_come)
        else:
            self.refused.extend((one, over_limit) for one in to_come)
        self._samples.pop(case)
        self._to_come.pop(case, None)
        return (replace(result, stopped=stopped) if result.status != "skipped" else result), None

    def _spend(self, result: TrialResult) -> None:
        if self.limited:
            case = _case(result.trial)
            self._spent[case] = self._spent.get(case, 0.0) + (result.spent_usd or 0.0)

    def _cost_limit_failure(self, trial: Trial) -> Failure | None:
        """Return a Failure if the samples of a case have reached its cost limit."""
        limit, spent = trial.cost_limit_usd, self._spent.get(_case(trial), 0.0)
        if limit is None or spent < limit:
            return None
        return Failure(
            COST_LIMIT, f"the samples of the case before it cost {money(spent)}; 'cost_limit_usd' is {money(limit)}"
        )


def _case(trial: Trial) -> str:
    """Return the part of a trial's key that all samples of the case share: all but the sample number."""
    return trial.key.rpartition("-")[0]
