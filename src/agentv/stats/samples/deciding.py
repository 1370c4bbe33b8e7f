"""Verdict of a case from samples that may end early: when to stop, what follows, and an unbiased rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from agentv.model.run.cases import Sample, case_verdict, gates_hold
from agentv.model.run.grade import reaches
from agentv.model.run.sampling import SamplingStop, Why
from agentv.model.run.trial import Status, Trial
from agentv.model.suite.suite import Aggregate
from agentv.stats.samples.sequence import confidence_sequence, side


class Rule(Struct, frozen=True):
    """How the samples of a case become its verdict.

    Attributes:
        repeat: samples that it gets; at most, where they may end early.
        threshold: 0..1; of the mean score, and where samples may end early of the pass rate.
        alpha: samples end where they show on which side of the threshold the pass rate lies, wrongly with this chance
            at most; None: all of them are run.
    """

    repeat: int
    threshold: float
    aggregate: Aggregate = "mean"
    alpha: float | None = None


def rule_of(trial: Trial) -> Rule:
    """How the samples of a trial's case become its verdict."""
    return Rule(trial.repeat, trial.threshold, trial.aggregate, trial.alpha)


def verdict_over(samples: Sequence[Sample], rule: Rule) -> Status:
    """The verdict of a case; `skipped` where samples are missing, `errored` where one errored.

    Args:
        samples: in the order in which they were made.
        rule: of the case.
    """
    if rule.alpha is None:
        return case_verdict(samples, repeat=rule.repeat, threshold=rule.threshold, aggregate=rule.aggregate)
    stopped = stopped_by(samples, rule)
    if any(sample.status == "errored" for sample in samples):
        return "errored"
    if stopped is None or stopped.why == "errored":  # no sample errored, as asked above: one was not run
        return "skipped"
    counted = list(_judged(samples))[: stopped.samples]
    shown = {"above": True, "undecided": reaches(stopped.passed / stopped.samples, rule.threshold)}
    return "passed" if shown.get(stopped.why, False) and gates_hold(counted) else "failed"


def stopped_by(samples: Sequence[Sample], rule: Rule) -> SamplingStop | None:
    """Why the case gets no more samples; None where it gets another one.

    What was decided once stays decided, whatever samples come after: those that were under way, or of another order.
    """
    if rule.alpha is None:
        return None
    passed = number = 0
    for number, sample in enumerate(_judged(samples), 1):
        passed += sample.status == "passed"
        why = _why(sample, (passed, number - passed), rule)
        if why is not None:
            return _stopped(why, passed, number, rule.alpha)
    if any(sample.status in ("errored", "skipped") for sample in samples):
        return _stopped("errored", passed, number, rule.alpha)
    return None


def _judged(samples: Sequence[Sample]) -> Iterator[Sample]:
    return (sample for sample in samples if sample.status in ("passed", "failed"))


def _why(sample: Sample, counts: tuple[int, int], rule: Rule) -> Why | None:
    if any(reaches(gate.mark, 1.0) and not reaches(gate.value, gate.mark) for gate in sample.gates):
        return "gate"
    found = side(*counts, rule.threshold, rule.alpha or 0.0)
    return found or ("undecided" if sum(counts) >= rule.repeat else None)


def _stopped(why: Why, passed: int, number: int, alpha: float) -> SamplingStop:
    low, high = confidence_sequence(passed, number - passed, alpha)
    return SamplingStop(why, number, passed, round(low, 6), round(high, 6))


_Row = Sequence[float | None]


def unbiased_rate(stopped: SamplingStop, *, threshold: float, alpha: float, repeat: int) -> float | None:
    """An unbiased estimate of a case's pass rate, 0..1, with the samples up to where they ended.

    Args:
        stopped: how they ended.
        threshold: of the rule that ended them.
        alpha: likewise.
        repeat: the most samples that the case could get.

    Returns:
        None where a sample errored: what it would have come to is not known.
    """
    if stopped.why == "errored" or not stopped.samples:
        return None
    rows = _beginnings(threshold, alpha, repeat)
    if stopped.why != "gate":
        return rows[stopped.samples][stopped.passed]
    if stopped.samples == 1:
        return 0.0  # the first sample is the one that failed the gate
    return rows[stopped.samples - 1][stopped.passed]


@lru_cache(maxsize=16)
def _beginnings(threshold: float, alpha: float, repeat: int) -> Sequence[_Row]:
    """Samples → passes → the share of paths there that begin with a pass; None if there is no path.

    No way goes through a place where the samples end. The ways are counted row by row, as shares of a row's most.
    """
    rows: list[_Row] = [[None]]
    every, begun = [1.0], [0.0]
    for number in range(1, repeat + 1):
        every = _step(every)
        begun = [0.0, 1.0] if number == 1 else _step(begun)
        rows.append([some / all_ if all_ else None for some, all_ in zip(begun, every, strict=True)])
        for passed in range(number + 1):
            if every[passed] and side(passed, number - passed, threshold, alpha) is not None:
                every[passed] = begun[passed] = 0.0
        most = max(every)
        if not most:
            break
        every, begun = [one / most for one in every], [one / most for one in begun]
    return rows


def _step(ways: Sequence[float]) -> list[float]:
    """The ways to each number of passes after one more sample."""
    return [
        (ways[passed] if passed < len(ways) else 0.0) + (ways[passed - 1] if passed else 0.0)
        for passed in range(len(ways) + 1)
    ]
