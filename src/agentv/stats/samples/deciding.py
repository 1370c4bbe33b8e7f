"""Verdict of a case whose sampling may end early: when to stop, the verdict, and an unbiased rate.

The bounds of a pass rate are checked after every sample. An ordinary interval is valid for a number of samples that was
fixed in advance. Checked after every sample until it shows a result, it is wrong far more often than its level. The
bounds here hold at all times together, so that sampling may stop at any time (Ville, 1939; Robbins, "Statistical
methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41, 1970; Howard, Ramdas,
McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of Statistics 49, 2021).

The evidence that a rate p is above θ, after s passes and f failures, is the likelihood ratio

    E = ½ · ∫ q^s (1−q)^f dq / (1−θ) / (θ^s (1−θ)^f)  +  ½ · 1{f = 0} / θ^s        the integral from θ to 1

Half of the bet is spread uniformly over all rates above θ and half is on a rate of 1, because many cases always pass or
always fail. For every p ≤ θ, E is a nonnegative supermartingale that begins at 1, since (p·q/θ + (1−p)·(1−q)/(1−θ)) ≤ 1
for every q ≥ θ. So the probability that it ever reaches 1/α is at most α. The evidence that p is below θ is the same
with passes and failures exchanged. For any rate, only one of the two errors is possible, so the probability of a wrong
verdict is at most α.

The integral follows from the binomial distribution: with X the passes among s + f + 1 draws at θ,
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
    """The side of the threshold on which the pass rate is, or None if the samples so far do not show it.

    If this is checked after every sample, the first result is wrong with a probability of at most `alpha`: `above` for
    a rate below the threshold, or `below` for a rate that is not.
    """
    if evidence_above(passed, failed, threshold) * alpha >= 1:
        return "above"
    return "below" if evidence_above(failed, passed, 1 - threshold) * alpha >= 1 else None


def evidence_for(found: Side, passed: int, failed: int, threshold: float) -> float:
    """The evidence that the pass rate is on the given side of the threshold."""
    if found == "above":
        return evidence_above(passed, failed, threshold)
    return evidence_above(failed, passed, 1 - threshold)


def evidence_above(passed: int, failed: int, threshold: float) -> float:
    """The evidence E that a rate is above a threshold (see the module's docstring): 1 is no evidence, ≥ 1/α is enough.

    No rate is above a threshold of 1, so the evidence is 0. A single pass shows that the rate is above 0.
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
    """Lower and upper bound of a rate, each valid at all times with a probability of at least 1 − `alpha`.

    They are the lowest and the highest rate that the samples do not refute.
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

    The terms are summed from the last one down, each relative to the one above it, so that none underflows.
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
    """Rule by which the samples of a case determine its verdict.

    Attributes:
        repeat: number of samples, or the largest number if sampling may end early.
        threshold: threshold of the mean score, or of the pass rate if sampling may end early; 0..1.
        aggregate: how the samples are combined if all of them are run.
        alpha: error rate of the decision that ends sampling early, or None to run all samples.
    """

    repeat: int
    threshold: float
    aggregate: Aggregate = "mean"
    alpha: float | None = None


def rule_of(trial: Trial) -> Rule:
    """The rule of a trial's case."""
    return Rule(trial.repeat, trial.threshold, trial.aggregate, trial.alpha)


def verdict_over(samples: Sequence[Sample], rule: Rule) -> Status:
    """The verdict of a case: `errored` if a sample errored, `skipped` if samples are missing.

    Args:
        samples: samples in the order in which they ran.
        rule: the rule of the case.
    """
    if rule.alpha is None:
        return case_verdict(samples, repeat=rule.repeat, threshold=rule.threshold, aggregate=rule.aggregate)
    stopped = stopped_by(samples, rule)
    if any(sample.status == "errored" for sample in samples):
        return "errored"
    if stopped is None or stopped.why == "errored":  # no sample errored (checked above), so one did not run
        return "skipped"
    counted = list(_judged(samples))[: stopped.samples]
    shown = {"above": True, "undecided": reaches(stopped.passed / stopped.samples, rule.threshold)}
    return "passed" if shown.get(stopped.why, False) and gates_hold(counted) else "failed"


def stopped_by(samples: Sequence[Sample], rule: Rule) -> SamplingStop | None:
    """Why the case gets no more samples, or None if it gets another one.

    The first decision is final: later samples, such as those already in progress, do not change it.
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
    """An unbiased estimate of the pass rate of a case whose sampling ended early, or None if a sample errored.

    Args:
        stopped: how sampling ended.
        threshold: threshold of the rule.
        alpha: error rate of the rule.
        repeat: largest number of samples of the case.
    """
    if stopped.why == "errored" or not stopped.samples:
        return None
    rows = _first_pass_shares(threshold, alpha, repeat)
    if stopped.why != "gate":
        return rows[stopped.samples][stopped.passed]
    if stopped.samples == 1:
        return 0.0  # the first sample is the one that failed the gate
    return rows[stopped.samples - 1][stopped.passed]


@lru_cache(maxsize=16)
def _first_pass_shares(threshold: float, alpha: float, repeat: int) -> Sequence[_Row]:
    """Share of the paths that begin with a pass, by number of samples and of passes; None if there is no path.

    A path ends where sampling stops. The paths are counted row by row, relative to the largest count of the row.
    """
    rows: list[_Row] = [[None]]
    paths, first_passed = [1.0], [0.0]
    for number in range(1, repeat + 1):
        paths = _step(paths)
        first_passed = [0.0, 1.0] if number == 1 else _step(first_passed)
        rows.append([some / all_ if all_ else None for some, all_ in zip(first_passed, paths, strict=True)])
        for passed in range(number + 1):
            if paths[passed] and side(passed, number - passed, threshold, alpha) is not None:
                paths[passed] = first_passed[passed] = 0.0
        most = max(paths)
        if not most:
            break
        paths, first_passed = [one / most for one in paths], [one / most for one in first_passed]
    return rows


def _step(paths: Sequence[float]) -> list[float]:
    """Number of paths to each number of passes after one more sample."""
    return [
        (paths[passed] if passed < len(paths) else 0.0) + (paths[passed - 1] if passed else 0.0)
        for passed in range(len(paths) + 1)
    ]
