#!/usr/bin/env python3
"""False-positive rate and power of `agentv trend`, by simulation.

    benchmarks/trend.py
    benchmarks/trend.py --rounds 400 --cases 200

Each round generates the runs of a suite and calls `stats.series.Trend`, the rule of the command. The cases have their
own rates; in addition each run has a shift that all its cases share, which persists from run to run with the
autocorrelation ρ: a provider that is worse today is worse tomorrow. `line` and `step` add a fall of so many points over
all runs, or at the middle. `ordinary` is the interval of least squares for independent runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Hashable

import numpy as np
from scipy import stats

from agentv.stats.series.series import Paired, Point, Trend, error_of_rate

SHIFT = 0.04
"""Standard deviation of what all cases of a run share."""


def main() -> None:
    """Print a line for each setting."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=100)
    options.add_argument("--cases", type=int, default=100)
    given = options.parse_args()
    print(f"{given.rounds} rounds, {given.cases} cases, shift {SHIFT}")
    print(f"{'runs':>5} {'rho':>5} {'fall':>12} {'shown':>7} {'as step':>8} {'ordinary':>9}")
    for runs in (8, 20):
        for rho in (0.0, 0.5, 0.8):
            for kind, fall in (("none", 0.0), ("line", 0.2), ("step", 0.2)):
                chance = np.random.default_rng(1)
                found = [one_round(chance, runs, given.cases, rho, (kind, fall)) for _ in range(given.rounds)]
                shown, steps, usual = (sum(one[at] for one in found) / given.rounds for at in range(3))
                what = f"{kind} {fall:.2f}"
                print(f"{runs:>5} {rho:>5} {what:>12} {shown:>7.1%} {steps:>8.1%} {usual:>9.1%}", flush=True)


def one_round(
    chance: np.random.Generator, runs: int, cases: int, rho: float, truth: tuple[str, float]
) -> tuple[bool, bool, bool]:
    """Whether a trend or a step is shown; whether it is a step; whether an ordinary interval excludes 0."""
    paired = drawn(chance, runs, cases, rho, truth)
    rates = [float(np.mean(list(run.values()))) for run in paired.runs]
    points = [
        Point(str(place), rate, None, cases, cases, error_of_rate(rate, cases)) for place, rate in enumerate(rates)
    ]
    trend = Trend.of("simulated", "pass rate", points, None, paired)
    shown = trend.direction in ("rises", "falls")
    usual = stats.linregress(range(runs), rates).pvalue
    return shown, shown and trend.step is not None, usual < 0.05


def drawn(chance: np.random.Generator, runs: int, cases: int, rho: float, truth: tuple[str, float]) -> Paired:
    """The verdicts of all cases in all runs."""
    kind, fall = truth
    noise = chance.standard_normal(runs)
    shift = noise.copy()
    for place in range(1, runs):
        shift[place] = rho * shift[place - 1] + noise[place] * np.sqrt(1 - rho**2)
    moved = {"none": np.zeros(runs), "line": np.linspace(0, 1, runs), "step": (np.arange(runs) >= runs // 2) * 1.0}
    level = chance.beta(6, 2, cases)[None, :] + (SHIFT * shift - fall * moved[kind])[:, None]
    passed = chance.random((runs, cases)) < level
    values: list[dict[Hashable, float]] = [dict(enumerate(map(float, run))) for run in passed]
    return Paired(values, {})


if __name__ == "__main__":
    main()
