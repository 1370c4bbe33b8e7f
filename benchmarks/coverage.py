"""Coverage of the intervals of one run, by simulation. For comparisons see `benchmarks/comparisons.py`.

    python benchmarks/coverage.py [--rounds 2000]

Nominal is 95%. With 2,000 rounds a simulated 95% is accurate to about ±1%.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from agentv.stats.intervals.means import mean_interval
from agentv.stats.intervals.proportion import wilson_interval
from agentv.stats.samples.case_samples import mean_disagreement

Chance = np.random.Generator
Interval = tuple[float, float]


def main() -> None:
    """Simulate everything and print it as one table."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=2000)
    rounds = options.parse_args().rounds
    print(f"intervals, nominal 95 %, {rounds} rounds")
    for name, draw in intervals():
        chance = np.random.default_rng(1)
        held = sum(low <= truth <= high for truth, (low, high) in (draw(chance) for _ in range(rounds)))
        print(f"  {name:<92} {held / rounds:6.1%}", flush=True)


def intervals() -> Iterator[tuple[str, Callable[[Chance], tuple[float, Interval]]]]:
    """Each draws data and gives the truth and the interval."""
    for count in (10, 50, 200):
        for rate in (0.5, 0.8, 0.95):
            yield f"pass rate, Wilson: {count} cases, rate {rate}", wilson(count, rate)
    for groups in (10, 30, 100):
        name = f"mean score: {groups} cases of 1 to 8 samples, half the variance between cases"
        yield f"{name}, CR2", clustered(groups, robust=True)
        yield f"{name}, were samples cases", clustered(groups, robust=False)
    for count in (20, 100):
        yield f"mean disagreement: {count} cases of 5 samples", flaky(count)


def wilson(count: int, rate: float) -> Callable[[Chance], tuple[float, Interval]]:
    """Cases that pass each with the same chance."""
    return lambda chance: (rate, wilson_interval(int(chance.binomial(count, rate)), count))


def clustered(groups: int, *, robust: bool) -> Callable[[Chance], tuple[float, Interval]]:
    """Scores of samples around their cases' own means."""

    def draw(chance: Chance) -> tuple[float, Interval]:
        sizes = chance.integers(1, 9, groups)
        cases = np.repeat(np.arange(groups), sizes)
        means = chance.beta(2, 1, groups)[cases]
        scores = means + chance.normal(0, np.sqrt(1 / 18), cases.size)
        found = mean_interval(scores.tolist(), (cases if robust else np.arange(cases.size)).tolist())
        return 2 / 3, (found.low, found.high)

    return draw


def flaky(count: int) -> Callable[[Chance], tuple[float, Interval]]:
    """A third of the cases always pass; the others pass with any chance alike, and disagree with one of 1/3."""

    def draw(chance: Chance) -> tuple[float, Interval]:
        rates = np.where(chance.random(count) < 1 / 3, 1.0, chance.random(count))
        found = mean_disagreement([(5, int(chance.binomial(5, rate))) for rate in rates])
        return 2 / 9, found.interval if found else (0.0, 0.0)

    return draw


if __name__ == "__main__":
    main()
