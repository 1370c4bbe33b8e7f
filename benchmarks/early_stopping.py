#!/usr/bin/env python3
"""How often `--until decided` decides a case wrongly, and how many calls it saves: by simulation.

    benchmarks/early_stopping.py
    benchmarks/early_stopping.py --rounds 20000 --most 50 --alpha 0.05

A case passes each sample with a fixed chance, and is sampled until it is decided, as `agentv eval` does it. For each
threshold and pass rate: how often it was decided wrongly (nominal: at most alpha), and rightly; how often it was left
undecided after the most samples; and the share of the samples that were run. The last column is what somebody does who
looks at an ordinary 95 % interval (Wilson) after every sample and stops when the threshold is outside of it: how often
that is wrong.

A wrong decision is `below` for a rate that is the threshold or more, and `above` for one that is less.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable
from functools import cache

from agentv.stats.proportion import wilson_interval
from agentv.stats.sequence import side

Looks = Callable[[int, int], str | None]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=5000)
    options.add_argument("--most", type=int, default=50, help="samples of a case at most")
    options.add_argument("--alpha", type=float, default=0.05)
    given = options.parse_args()
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


def looks_of(threshold: float, alpha: float) -> Looks:
    """What agentv does."""
    return cache(lambda passed, failed: side(passed, failed, threshold, alpha))


def peeks_of(threshold: float) -> Looks:
    """An interval for a fixed number of samples, looked at after each."""

    @cache
    def look(passed: int, failed: int) -> str | None:
        low, high = wilson_interval(passed, passed + failed)
        return "above" if low > threshold else "below" if high < threshold else None

    return look


def simulated(rate: float, looks: Looks, rounds: int, most: int) -> tuple[Counter[str | None], int]:
    """How the cases ended, and how many samples they took."""
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
