"""Verdict of a case from samples that may end early: when to stop, what follows, and an unbiased rate.

The bounds of a rate are watched while samples come in. An ordinary interval holds for a number of samples that was
fixed before. Looked at after every sample, until it says what one waits for, it is wrong far more often than it claims.
The bounds here hold at all times at once, so that one may stop whenever they say enough (Ville, 1939; Robbins,
"Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41, 1970; Howard,
Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of Statistics
49, 2021).

The evidence that a rate p lies above θ, after s passes and f failures, is the likelihood ratio

    E = ½ · ∫ q^s (1−q)^f dq / (1−θ) / (θ^s (1−θ)^f)  +  ½ · 1{f = 0} / θ^s        the integral from θ to 1

a bet on all rates above θ alike, and as much on a rate of 1: many cases always pass, or never. For every p ≤ θ it is a
nonnegative supermartingale that begins at 1, since (p·q/θ + (1−p)·(1−q)/(1−θ)) ≤ 1 for every q ≥ θ. So the chance that
it ever reaches 1/α is α at most. Below θ it is the same with passes and failures exchanged. Of the two errors that are
possible a rate allows only one, so that the chance of a wrong verdict is α at most.

The integral is one of the binomial distribution: with X the passes among s + f + 1 draws at θ,
∫ q^s (1−q)^f dq / ((1−θ) θ^s (1−θ)^f) = P(X ≤ s) / ((f + 1) · P(X = s)).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import exp, inf, log
from typing import Literal

from msgspec import Struct

from agentv.model.run.cases import Sample, case_verdict, gates_hold
from agentv.model.run.grade import reaches
from agentv.model.run.trial import SamplingStop, Status, Trial, Why
from agentv.model.suite.suite import Aggregate

Side = Literal["above", "below"]


@lru_cache(maxsize=1 << 14)
def side(passed: int, failed: int, threshold: float, alpha: float) -> Side | None:
    """On which side of a threshold the rate lies, by samples so far; None where they do not tell yet.

    Asked after every sample, the first answer that is not None is wrong with a chance of `alpha` at most: `above` for a
    rate that is lower than the threshold, or `below` for one that is not.
    """
    if evidence_above(passed, failed, threshold) * alpha >= 1:
        return "above"
    return "below" if evidence_above(failed, passed, 1 - threshold) * alpha >= 1 else None


def evidence_for(found: Side, passed: int, failed: int, threshold: float) -> float:
    """The evidence that the rate lies on that side of the threshold."""
    if found == "above":
        return evidence_above(passed, failed, threshold)
    return evidence_above(failed, passed, 1 - threshold)


def evidence_above(passed: int, failed: int, threshold: float) -> float:
    """The evidence that a rate lies above a threshold, as in the module's docstring: 1 for none, ≥ 1/α for enough.

    A rate of 1 or more has nothing above it, and one of 0 everything but itself, which no sample can tell apart.
    """
    if threshold >= 1:
        return 0.0
    if threshold <= 0:
        return inf if passed else 1.0
    always = exp(-passed * log(threshold)) if not failed and -passed * log(threshold) < 700 else 0.0
    if not failed and not always:
        return inf
    return (_mixture(passed, failed, threshold) + always) / 2


def confidence_sequence(passed: int, failed: int, alpha: float) -> tuple[float, float]:
    """Bounds of a rate: each of them holds at all times with a chance of 1 − `alpha` at least.

    The lowest rate that the samples do not refute as too low, and the highest that they do not refute as too high.
    """
    return _lower(passed, failed, alpha), 1 - _lower(failed, passed, alpha)


@lru_cache(maxsize=4096)
def _lower(passed: int, failed: int, alpha: float) -> float:
    low, high = 0.0, passed / (passed + failed) if passed + failed else 0.0
    if not high:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        if evidence_above(passed, failed, middle) * alpha >= 1:
            low = middle
        else:
            high = middle
    return low


def _mixture(passed: int, failed: int, threshold: float) -> float:
    """P(X ≤ passed) / ((failed + 1) · P(X = passed)) for X of passed + failed + 1 draws at the threshold.

    Summed from the last term down, each by its ratio to the one above it, so that nothing is too small to be held.
    """
    draws, odds = passed + failed + 1, (1 - threshold) / threshold
    ratio = total = 1.0
    for number in range(passed, 0, -1):  # P(X = number − 1) / P(X = number)
        ratio *= number / (draws - number + 1) * odds
        total += ratio
        if total > _HUGE:
            return inf
        if ratio < total * _SMALL and number / (draws - number + 1) * odds < 1:
            break
    return total / (failed + 1)


_HUGE = 1e250
_SMALL = 1e-18


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
