#!/usr/bin/env python3
"""False alarms and detection of `agentv trend`, by simulation.

    benchmarks/trend.py
    benchmarks/trend.py --rounds 400 --cases 200

A round is a series of runs. Each case passes or fails by nature (90 % pass) and is flaky: in each run it does the
opposite with its own probability, drawn between 0 and a maximum. `null`: nothing changes in 30 runs; a false alarm is
any difference shown from the run before, or of the then latest run from the first. `step`: at one run, cases that pass
begin to fail until the pass rate is 30 points lower; it counts only if the difference from the run before is shown.
The rule is `stats.comparison.spending`, that of the command.
"""

from __future__ import annotations

import argparse

import numpy as np

from agentv.stats.difference import Differences, Numbers, level_at

RUNS = 30
POSITIONS = (1, 2, 3, 9, 29)
STEP = 0.3


def main() -> None:
    """Print a line for each maximum of flakiness."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=1000)
    options.add_argument("--cases", type=int, default=100)
    given = options.parse_args()
    print(f"{given.rounds} rounds, {given.cases} cases; step shown at run {', '.join(str(at + 1) for at in POSITIONS)}")
    print(f"{'flaky':>12} {'false alarms':>13} {'step shown':>11}")
    known: dict[tuple[int, int], float] = {}
    for low, high in ((0.0, 0.0), (0.03, 0.03), (0.0, 0.1), (0.0, 0.3), (0.0, 0.5), (0.5, 0.5)):
        chance = np.random.default_rng(1)
        alarms = sum(false_alarm(chance, given.cases, (low, high), known) for _ in range(given.rounds))
        drops = [dropped(chance, given.cases, (low, high), known) for _ in range(given.rounds)]
        shown = " ".join(f"{sum(p <= level_at(at) for p in drops) / given.rounds:>6.1%}" for at in POSITIONS)
        print(f"{low:>5} to {high:<4} {alarms / given.rounds:>12.1%}  {shown}", flush=True)


def rates(chance: np.random.Generator, cases: int, flaky: tuple[float, float]) -> tuple[Numbers, Numbers]:
    """How often each case passes, and how often it does the opposite of what it does by nature."""
    flips = chance.uniform(*flaky, cases)
    return np.where(chance.random(cases) < 0.9, 1 - flips, flips), flips


def false_alarm(
    chance: np.random.Generator, cases: int, flaky: tuple[float, float], known: dict[tuple[int, int], float]
) -> bool:
    """Whether a series in which nothing changes shows a difference."""
    passing, _ = rates(chance, cases, flaky)
    runs = (chance.random((RUNS, cases)) < passing).astype(float)
    return any(
        p_of(runs[base], runs[at], known) <= level_at(at, from_baseline=base < at - 1)
        for at in range(1, RUNS)
        for base in {at - 1, 0}
    )


def dropped(
    chance: np.random.Generator, cases: int, flaky: tuple[float, float], known: dict[tuple[int, int], float]
) -> float:
    """The p-value of a fall by 30 points, where it falls."""
    passing, flips = rates(chance, cases, flaky)
    after, left = passing.copy(), STEP * cases
    for case in chance.permutation(cases):
        by = min(left, max(0.0, passing[case] - flips[case]))
        after[case] -= by
        left -= by
    drawn = [(chance.random(cases) < one).astype(float) for one in (passing, after)]
    p = p_of(drawn[0], drawn[1], known)
    return p if drawn[1].sum() < drawn[0].sum() else 1.0


def p_of(before: Numbers, after: Numbers, known: dict[tuple[int, int], float]) -> float:
    """The p-value of the command. Of verdicts of single cases it depends on those that rose and fell alone."""
    moved = int((after > before).sum()), int((after < before).sum())
    if moved not in known:
        known[moved] = Differences(before.tolist(), after.tolist(), range(len(before))).p()
    return known[moved]


if __name__ == "__main__":
    main()
