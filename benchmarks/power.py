"""How often `compare` shows a drop that `agentv power` planned for: promised beside simulated.

    python benchmarks/power.py [--rounds 400]

The rule is that of `compare`: a permutation test over the cases and a bootstrap interval that leaves 0 out. The true
rates of the cases are drawn from beta distributions; with the chance `shared` a case is as hard in both runs. With 400
rounds a simulated 80 % is sure to about ±4 points.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from scipy import special

from agentv.stats.noninferiority import verdict
from agentv.stats.paired import bca_interval, permutation_test
from agentv.stats.power import Drop, chance_shown

ALPHA = 0.05


def main() -> None:
    """Simulate every plan and print it as one table."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=400)
    rounds = options.parse_args().rounds
    print(f"cases, repeat, rate, drop, alike, shared: promised, simulated over {rounds} rounds")
    for cases, repeat, drop in plans():
        chance = np.random.default_rng(1)
        shown = sum(is_shown(chance, cases, repeat, drop) for _ in range(rounds)) / rounds
        promised = chance_shown(cases, repeat, drop, ALPHA)
        told = f"{cases:>5} {repeat:>3} {drop.rate:6.2f} {drop.difference:6.3f} {drop.alike:5.2f} {drop.shared:5.2f}"
        print(f"{told}: {promised:6.1%} {shown:6.1%}", flush=True)


def plans() -> Iterator[tuple[int, int, Drop]]:
    """Few cases and many, one sample and several, hard cases and easy ones."""
    yield 6, 1, Drop(0.8, 0.7)
    yield 10, 1, Drop(0.8, 0.488)
    yield 10, 1, Drop(1.0, 0.7)
    yield 20, 1, Drop(0.8, 0.324)
    yield 58, 1, Drop(0.95, 0.1)
    yield 100, 1, Drop(0.8, 0.139)
    yield 200, 1, Drop(0.8, 0.05)
    yield 200, 1, Drop(0.8, 0.098)
    yield 200, 1, Drop(0.8, 0.05, alike=0.9, shared=0.9)
    yield 50, 1, Drop(0.8, 0.15, alike=1.0, shared=1.0)
    yield 6, 3, Drop(0.8, 0.6)
    yield 6, 10, Drop(0.8, 0.5)
    yield 8, 5, Drop(0.8, 0.4)
    yield 10, 3, Drop(0.8, 0.4)
    yield 10, 5, Drop(0.95, 0.2)
    yield 20, 3, Drop(0.8, 0.25)
    yield 20, 10, Drop(0.95, 0.1)
    yield 50, 3, Drop(0.95, 0.1)
    yield 50, 5, Drop(0.8, 0.2, alike=0.9, shared=0.9)
    yield 421, 3, Drop(0.8, 0.05)


def is_shown(chance: np.random.Generator, cases: int, repeat: int, drop: Drop) -> bool:
    """Whether two drawn runs are called worse."""
    same = chance.random(cases) < drop.shared
    hard = chance.random(cases)
    before = rates(drop.rate, drop.alike, hard)
    after = rates(drop.after, drop.alike, np.where(same, hard, chance.random(cases)))
    differences = (chance.binomial(repeat, after) - chance.binomial(repeat, before)) / repeat
    if permutation_test(differences.tolist(), rounds=2000) > ALPHA:
        return False
    return verdict(*bca_interval(differences.tolist(), level=1 - ALPHA, rounds=2000), 0.0) == "worse"


def rates(mean: float, alike: float, hard: np.ndarray) -> np.ndarray:
    """The true rates of cases so hard, by how much of the variance of a verdict lies between them."""
    if mean in {0.0, 1.0} or alike == 0:
        return np.full(hard.shape, mean)
    if alike == 1:
        return (hard > 1 - mean).astype(float)
    weight = 1 / alike - 1
    return np.clip(special.betaincinv(mean * weight, (1 - mean) * weight, hard), 0, 1)


if __name__ == "__main__":
    main()
