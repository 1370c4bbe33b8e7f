"""Sequential samples of a case: one after the other, until they decide it, or have cost what they may."""

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
"""Code of samples that are not run because those before them cost enough."""


class SequentialSampler(Struct):
    """The samples of all cases that end early: those of cases under way, and those that an earlier process made.

    Attributes:
        limited: some cases have a limit of their cost, so that what their samples cost is added up.
        spared: samples that were planned and are not needed.
        refused: samples that will not run, and why. Whoever runs trials takes these away too.
    """

    limited: bool = False
    spared: int = 0
    refused: deque[tuple[Trial, Failure]] = field(default_factory=deque)
    _spent: dict[str, float] = {}
    _samples: dict[str, list[Sample]] = {}
    _to_come: dict[str, list[Trial]] = {}

    def keep(self, result: TrialResult) -> None:
        """A sample that an earlier process made; in their order."""
        self._spend(result)
        if result.trial.alpha is not None:
            self._samples.setdefault(_case(result.trial), []).append(sample_of(result))

    def open(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """The trials without those of cases that are decided already; a pure look, as often as one likes."""
        if not self._samples:
            return iter(trials)
        from agentv.stats.samples.deciding import rule_of, stopped_by

        def is_open(trial: Trial) -> bool:
            samples = self._samples.get(_case(trial)) if trial.alpha is not None else None
            return samples is None or stopped_by(samples, rule_of(trial)) is None

        return filter(is_open, trials)

    def firsts(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """The trials that may start: of a case whose samples end early only the first; the others follow by `after`.

        Args:
            trials: pending ones; samples of a case are consecutive.
        """
        for (case, early), group in groupby(trials, key=lambda trial: (_case(trial), trial.in_turn)):
            if not early:
                yield from group
                continue
            first, *others = group
            too_much = self._too_much(first)
            if too_much is not None:
                self.refused.extend((one, too_much) for one in (first, *others))
                continue
            self._to_come[case] = others
            yield first

    def after(self, result: TrialResult) -> tuple[TrialResult, Trial | None]:
        """The result, with the reason where it is the last of its case; and the sample that comes next, if any."""
        from agentv.stats.samples.deciding import rule_of, stopped_by

        trial = result.trial
        if not trial.in_turn:
            return result, None
        case = _case(trial)
        if not result.reused:
            self._spend(result)
        samples = self._samples.setdefault(case, [])
        samples.append(sample_of(result))
        to_come = self._to_come.get(case, [])
        stopped = stopped_by(samples, rule_of(trial))
        too_much = self._too_much(trial) if stopped is None else None
        if stopped is None and to_come and too_much is None:
            return result, to_come.pop(0)
        if too_much is None:
            self.spared += len(to_come)
        else:
            self.refused.extend((one, too_much) for one in to_come)
        self._samples.pop(case)
        self._to_come.pop(case, None)
        return (replace(result, stopped=stopped) if result.status != "skipped" else result), None

    def _spend(self, result: TrialResult) -> None:
        if self.limited:
            case = _case(result.trial)
            self._spent[case] = self._spent.get(case, 0.0) + (result.spent_usd or 0.0)

    def _too_much(self, trial: Trial) -> Failure | None:
        """Why a case gets no more samples: those that ran have cost what they may."""
        limit, spent = trial.cost_limit_usd, self._spent.get(_case(trial), 0.0)
        if limit is None or spent < limit:
            return None
        return Failure(
            COST_LIMIT, f"the samples of the case before it cost {money(spent)}; 'cost_limit_usd' is {money(limit)}"
        )


def _case(trial: Trial) -> str:
    """What all samples of a case on a target have in common: their keys but for the number at the end."""
    return trial.key.rpartition("-")[0]
