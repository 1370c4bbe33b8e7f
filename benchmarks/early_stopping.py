#!/usr/bin/env python3
"""Error rate of `--until decided`, and the calls that it saves, by simulation.

    benchmarks/early_stopping.py
    benchmarks/early_stopping.py --rounds 20000 --most 50 --alpha 0.05

A case passes each sample with a fixed probability, and is sampled until decided, as in `agentv eval`. For each
threshold and pass rate: how often it was decided wrongly (nominal: at most alpha), and correctly; how often it was
undecided after the maximum number of samples; and the share of the samples that ran. The last column is the error rate
of checking an ordinary 95% interval (Wilson) after every sample, and stopping when the threshold is outside of
it.

    benchmarks/early_stopping.py --together

draws whole runs instead, and prints the share of decided cases that are wrong, how many decisions hold at a
false discovery rate of alpha (`stats.discoveries`, as in the report) and which share of those is wrong; the same
for cases sampled at a fifth of alpha and then held at alpha, which costs more samples; and the coverage of the interval
of the pass rate: that of `stats.stopped`, and an ordinary one around the mean share.

A wrong decision is `below` for a rate at or above the threshold, and `above` for one below it.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

from agentv.model.run.cases import Sample
from agentv.model.run.trial import SamplingStop
from agentv.stats.intervals.design_effect import estimated_mean, estimated_rate
from agentv.stats.intervals.proportion import wilson_interval
from agentv.stats.rule import evidence_needed
from agentv.stats.samples.deciding import Rule, evidence_for, side, stopped_by, unbiased_rate

Looks = Callable[[int, int], str | None]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=5000)
    options.add_argument("--most", type=int, default=50, help="samples of a case at most")
    options.add_argument("--alpha", type=float, default=0.05)
    options.add_argument("--together", action="store_true", help="whole runs: discoveries and intervals")
    given = options.parse_args()
    if given.together:
        together(min(given.rounds, 200), given.alpha)
        return
    print(f"{given.rounds} cases each, at most {given.most} samples, alpha {given.alpha}")
    print(f"{'threshold':>9} {'rate':>6} {'wrong':>7} {'right':>7} {'undecided':>10} {'samples':>8}   {'peeking':>8}")
    worst, used, runs = 0.0, 0, 0
    for threshold in (0.5, 0.8, 0.95):
        sequence, interval = looks_of(threshold, given.alpha), peeks_of(threshold)
        for rate in (0.0, 0.3, 0.5, 0.7, 0.79, 0.8, 0.9, 0.95, 0.97, 1.0):
            ends, samples = simulated(rate, sequence, given.rounds, given.most)
            peeked, _ = simulated(rate, interval, given.rounds, given.most)
            bad, good = ("above", "below") if rate < threshold else ("below", "above")
            wrong, share = ends[bad] / given.rounds, samples / given.rounds / given.most
            worst, used, runs = max(worst, wrong), used + samples, runs + given.rounds * given.most
            said = f"{threshold:>9} {rate:>6} {wrong:>7.2%} {ends[good] / given.rounds:>7.1%}"
            print(f"{said} {ends[None] / given.rounds:>10.1%} {share:>8.1%}   {peeked[bad] / given.rounds:>8.1%}")
    print(f"worst error rate {worst:.2%}; {1 - used / runs:.1%} of all calls saved")


RATES: dict[str, Callable[[random.Random], float]] = {
    "near 0.8": lambda dice: dice.uniform(0.75, 0.84),
    "spread": lambda dice: dice.betavariate(4, 1),
    "mostly fine": lambda dice: dice.choice((1.0, 1.0, 0.95, 0.6)),
    "all 0.75": lambda _dice: 0.75,
}


def together(rounds: int, alpha: float) -> None:
    """Whole runs of cases with different true rates."""
    print(f"{rounds} runs each, threshold 0.8, alpha {alpha}: decided | kept at alpha | stricter samples, kept | cover")
    for name, rates in RATES.items():
        for cases, most in ((60, 10), (200, 30)):
            dice = random.Random(1)
            found = [one_run(dice, rates, Rule(most, 0.8, "mean", alpha), cases) for _ in range(rounds)]
            strict = [one_run(dice, rates, Rule(most, 0.8, "mean", alpha / 5), cases, alpha) for _ in range(rounds)]
            truth = sum(rates(random.Random(seed)) for seed in range(20_000)) / 20_000
            covers, usual = (sum(one[at][0] <= truth <= one[at][1] for one in found) / rounds for at in (5, 6))
            print(f"{name:>12} {cases:>4} x {most:<3} {shares(found)} | {shares(strict)} | {covers:.1%} {usual:.1%}")


def shares(runs: list[tuple[float, ...]]) -> str:
    """Of the decided ones: how many, which share is wrong; of those kept the same; samples of each case."""
    number = len(runs)
    decided, wrong, kept, bad, samples = (sum(one[at] for one in runs) / number for at in range(5))
    return f"{decided:6.1f} {wrong:6.1%} {kept:6.1f} {bad:6.1%} {samples:5.1f}"


def one_run(
    dice: random.Random, rates: Callable[[random.Random], float], rule: Rule, cases: int, level: float | None = None
) -> tuple[Any, ...]:
    """Decided ones, the share of them that is wrong, kept ones, likewise; samples a case; two intervals."""
    ends = [(rate, sampled(dice, rate, rule)) for rate in (rates(dice) for _ in range(cases))]
    decided = [
        (evidence_for(end.side, end.passed, end.samples - end.passed, 0.8), (end.side == "above") == (rate < 0.8))
        for rate, end in ends
        if end.side is not None
    ]
    needed = evidence_needed([evidence for evidence, _ in decided], cases, level or rule.alpha or 0.05)
    kept = [wrong for evidence, wrong in decided if evidence >= needed]
    estimates = [
        found
        for _, end in ends
        if (found := unbiased_rate(end, threshold=0.8, alpha=rule.alpha or 0.05, repeat=rule.repeat)) is not None
    ]
    stopped = estimated_mean([(1, one) for one in estimates])
    usual = estimated_rate([(end.samples, end.passed) for _, end in ends])
    return (
        len(decided),
        sum(wrong for _, wrong in decided) / max(1, len(decided)),
        len(kept),
        sum(kept) / max(1, len(kept)),
        sum(end.samples for _, end in ends) / cases,
        stopped.interval,
        usual.interval,
    )


def sampled(dice: random.Random, rate: float, rule: Rule) -> SamplingStop:
    """One case, as `agentv eval` samples it."""
    samples: list[Sample] = []
    while (end := stopped_by(samples, rule)) is None:
        samples.append(Sample("passed" if dice.random() < rate else "failed", None))
    return end


def looks_of(threshold: float, alpha: float) -> Looks:
    """Decisions of agentv."""
    return cache(lambda passed, failed: side(passed, failed, threshold, alpha))


def peeks_of(threshold: float) -> Looks:
    """Decisions by an interval for a fixed number of samples, checked after each."""

    @cache
    def look(passed: int, failed: int) -> str | None:
        low, high = wilson_interval(passed, passed + failed)
        return "above" if low > threshold else "below" if high < threshold else None

    return look


def simulated(rate: float, looks: Looks, rounds: int, most: int) -> tuple[Counter[str | None], int]:
    """Results of the cases, and the number of their samples."""
    dice, ends, samples = random.Random(1), Counter[str | None](), 0
    for _ in range(rounds):
        passed, found, number = 0, None, 0
        while found is None and number < most:
            number += 1
            passed += dice.random() < rate
            found = looks(passed, number - passed)
        ends[found] += 1
        samples += number
    return ends, samples


if __name__ == "__main__":
    main()
