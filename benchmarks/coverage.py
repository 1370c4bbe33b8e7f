"""Coverage of agentv's intervals, and false-positive rates of its tests, by simulation.

    python benchmarks/coverage.py [--rounds 2000]

Nominal are 95% for intervals and at most 5% for tests. With 2,000 rounds a simulated 95% is accurate to about ±1%.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from agentv.stats.comparison.difference import Differences
from agentv.stats.comparison.holm import adjusted
from agentv.stats.comparison.paired import mcnemar_exact, permutation_test
from agentv.stats.comparison.winloss import WinLoss
from agentv.stats.intervals.clustered import mean_interval
from agentv.stats.intervals.proportion import wilson_interval
from agentv.stats.samples.flakiness import mean_disagreement

Chance = np.random.Generator
Interval = tuple[float, float]

RESAMPLED = 2000
"""Permutations drawn within a simulation; agentv itself draws 10,000."""


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
    print(f"tests, nominal at most 5 %, {rounds} rounds in which nothing differs")
    for name, test in tests():
        chance = np.random.default_rng(1)
        print(f"  {name:<92} {sum(test(chance) <= 0.05 for _ in range(rounds)) / rounds:6.1%}", flush=True)


def intervals() -> Iterator[tuple[str, Callable[[Chance], tuple[float, Interval]]]]:
    """Each draws data and gives the truth and the interval."""
    for count in (10, 50, 200):
        for rate in (0.5, 0.8, 0.95):
            yield f"pass rate, Wilson: {count} cases, rate {rate}", wilson(count, rate)
    for groups in (10, 30, 100):
        name = f"mean score: {groups} cases of 1 to 8 samples, half the variance between cases"
        yield f"{name}, CR2", clustered(groups, robust=True)
        yield f"{name}, were samples cases", clustered(groups, robust=False)
    for count in (10, 20, 50, 200):
        for kind, sampler in DIFFERENCES.items():
            yield f"mean difference, joint test of compare: {count} cases, {kind}", joint(count, sampler)
            yield f"mean difference, CR2: {count} cases, {kind}", student(count, sampler)
    for count in (10, 20, 50, 200):
        yield f"wins less losses, Tango: {count} cases, 10 % won, 5 % lost", tango(count, 0.1, 0.05)
        yield f"wins less losses, Tango: {count} cases, 30 % won, 20 % lost", tango(count, 0.3, 0.2)
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


DIFFERENCES: dict[str, Callable[[Chance, int], tuple[float, np.ndarray]]] = {
    "bell-shaped": lambda chance, count: (0.05, chance.normal(0.05, 0.1, count)),
    "skewed": lambda chance, count: (0.0, 0.4 * chance.beta(1, 7, count) - 0.05),
    "heavy tails": lambda chance, count: (0.0, (chance.random(count) < 0.05) * chance.uniform(-0.5, 0.5, count)),
    "verdicts, 20 % won, 10 % lost": lambda chance, count: (0.1, chance.choice([1, 0, -1], count, p=[0.2, 0.7, 0.1])),
    "verdicts, 5 % won, 5 % lost": lambda chance, count: (0.0, chance.choice([1, 0, -1], count, p=[0.05, 0.9, 0.05])),
}


def joint(
    count: int, sampler: Callable[[Chance, int], tuple[float, np.ndarray]]
) -> Callable[[Chance], tuple[float, Interval]]:
    """Differences of paired cases; of scores the base has 0.5, of verdicts what the difference allows."""

    def draw(chance: Chance) -> tuple[float, Interval]:
        truth, values = sampler(chance, count)
        before = np.where(values < 0, 1.0, 0.0) if set(values) <= {-1, 0, 1} else np.full(count, 0.5)
        test = Differences([float(one) for one in values], before.tolist(), range(count)).test
        return truth, test.interval(0.95) if test else (-1.0, 1.0)

    return draw


def student(
    count: int, sampler: Callable[[Chance, int], tuple[float, np.ndarray]]
) -> Callable[[Chance], tuple[float, Interval]]:
    """The same differences by clusters of one, which is Student's interval."""

    def draw(chance: Chance) -> tuple[float, Interval]:
        truth, values = sampler(chance, count)
        found = mean_interval(values.tolist(), range(count), bounds=(-1.0, 1.0))
        return truth, (found.low, found.high)

    return draw


def tango(count: int, won: float, lost: float) -> Callable[[Chance], tuple[float, Interval]]:
    """Pairs of verdicts."""

    def draw(chance: Chance) -> tuple[float, Interval]:
        wins, losses, ties = chance.multinomial(count, [won, lost, 1 - won - lost])
        return won - lost, WinLoss(int(wins), int(losses), int(ties)).interval()

    return draw


def flaky(count: int) -> Callable[[Chance], tuple[float, Interval]]:
    """A third of the cases always pass; the others pass with any chance alike, and disagree with one of 1/3."""

    def draw(chance: Chance) -> tuple[float, Interval]:
        rates = np.where(chance.random(count) < 1 / 3, 1.0, chance.random(count))
        found = mean_disagreement([(5, int(chance.binomial(5, rate))) for rate in rates])
        return 2 / 9, (found.low, found.high) if found else (0.0, 0.0)

    return draw


def tests() -> Iterator[tuple[str, Callable[[Chance], float]]]:
    """Each draws data without a difference and gives a p-value."""
    for count in (20, 200):
        yield f"McNemar, exact: {count} cases, 20 % changed", mcnemar(count)
    for count in (8, 20, 50):
        yield f"permutation: {count} cases, bell-shaped", lambda chance, size=count: permuted(chance, size)
    yield "Holm: the least of 10 comparisons of 50 cases", holm
    yield "the least of 10 comparisons of 50 cases, not adjusted", lambda chance: min(ten(chance))


def mcnemar(count: int) -> Callable[[Chance], float]:
    """Pairs of which as many are won as lost."""

    def draw(chance: Chance) -> float:
        wins, losses, _ = chance.multinomial(count, [0.1, 0.1, 0.8])
        return mcnemar_exact(int(wins), int(losses))

    return draw


def permuted(chance: Chance, count: int) -> float:
    """Differences around 0."""
    values = chance.normal(0, 0.2, count).tolist()
    return permutation_test(values, seed=int(chance.integers(2**31)), rounds=RESAMPLED)


def ten(chance: Chance) -> list[float]:
    """P-values of ten comparisons."""
    counts = chance.multinomial(50, [0.2, 0.2, 0.6], size=10)
    return [mcnemar_exact(int(wins), int(losses)) for wins, losses, _ in counts]


def holm(chance: Chance) -> float:
    """The least after Holm's adjustment: at 0.05 or below, one comparison at least is called real."""
    return min(adjusted(ten(chance)))


if __name__ == "__main__":
    main()
