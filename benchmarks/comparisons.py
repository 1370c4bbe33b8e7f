"""How often `agentv compare` is wrong where nothing differs, and how often it shows what does.

    python benchmarks/comparisons.py [--rounds 1000] [--json]

Each round draws two runs of the same cases and judges them by the rule of the command, with all that belongs to it:
mean score and pass rate, clusters, corrections. Under a null both runs have the same true mean, and a verdict is false
if it is better or worse. Under a difference it is right if it says so, for losses and gains.

The tables also hold for an older agentv that is installed instead: the script calls `judge` of whichever is imported.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from agentv.app.compare.judging import judge
from agentv.model.run.comparison import CaseKey, CaseOutcome, CasePair, ComparisonSettings

THRESHOLD = 0.8
SIZES = (14, 20, 30, 50, 100, 200, 300)
Drawn = tuple[Sequence[float], Sequence[float], Sequence[int]]
"""Scores before and after, and the cluster of each case."""


def verdict(drawn: Drawn) -> str:
    """The verdict of the command over such cases."""
    pairs = []
    for number, (before, after, cluster) in enumerate(zip(*drawn, strict=True)):
        key = CaseKey("s", str(number), None, "t")
        sides = (
            CaseOutcome(
                "passed" if score >= THRESHOLD else "failed",
                float(score),
                1,
                THRESHOLD,
                0,
                0,
                0,
                cluster=str(cluster),
                rate=float(score >= THRESHOLD),
            )
            for score in (before, after)
        )
        pairs.append(CasePair(key, key, *sides))
    return judge(pairs, ComparisonSettings()).verdict


def _alone(count: int) -> range:
    return range(count)


def verdicts(chance: np.random.Generator, count: int, change: float = 0.0, size: int = 1) -> Drawn:
    """Verdicts of cases that are hard or easy, 80 % passed; alike within clusters."""
    clusters = np.arange(count) // size
    rates = chance.beta(1.6, 0.4, count) if size == 1 else chance.beta(1.6, 0.4, clusters[-1] + 1)[clusters]
    after = np.clip(rates + change * (rates / 0.8 if change < 0 else (1 - rates) / 0.2), 0, 1)
    return (chance.random(count) < rates) * 1.0, (chance.random(count) < after) * 1.0, clusters


def customers(chance: np.random.Generator, count: int) -> Drawn:
    """Eleven customers with nine cases each and three single cases; each customer gets better or worse as a whole."""
    del count
    clusters = np.array([customer for customer in range(11) for _ in range(9)] + [11, 12, 13])
    shift = chance.normal(0, 0.3, 14)[clusters]
    before = chance.normal(0.6, 0.1, clusters.size)
    return before.clip(0, 1), (before + shift).clip(0, 1), clusters


def scores(chance: np.random.Generator, count: int, change: float = 0.0, size: int = 1) -> Drawn:
    """Scores around 0.65 that differ by 0.15 between runs; clusters move together."""
    clusters = np.arange(count) // size
    before = chance.normal(0.65, 0.12, count)
    noise = chance.normal(0, 0.15, count)
    if size > 1:
        noise = np.sqrt(0.5) * noise + np.sqrt(0.5) * chance.normal(0, 0.15, clusters[-1] + 1)[clusters]
    return before.clip(0, 1), (before + change + noise).clip(0, 1), clusters


def rare_zeros(chance: np.random.Generator, count: int, level: float = 0.7) -> Drawn:
    """The base is a little higher, but 0 in 5 % of the cases; the means are the same."""
    after = chance.normal(level, 0.05, count).clip(0, 1)
    before = (after + level * 0.05 / 0.95 + chance.normal(0, 0.02, count)).clip(0, 1)
    before[chance.random(count) < 0.05] = 0.0
    return before, after, _alone(count)


def skewed(chance: np.random.Generator, count: int) -> Drawn:
    """Scores near 1 with a long tail, independent in both runs."""
    return chance.beta(8, 1, count), chance.beta(8, 1, count), _alone(count)


def few_moved(chance: np.random.Generator, count: int) -> Drawn:
    """One case in ten is answered otherwise; the others are the same to the last digit."""
    before = chance.beta(0.8, 0.4, count)
    after = np.where(chance.random(count) < 0.1, chance.beta(0.8, 0.4, count), before)
    other = np.where(after == before, before, chance.beta(0.8, 0.4, count))
    return other, after, _alone(count)


def neighbours(chance: np.random.Generator, count: int) -> Drawn:
    """Differences of cases that follow each other are correlated (0.3), and no cluster says so."""
    noise = chance.normal(0, 0.15, count)
    for place in range(1, count):
        noise[place] = 0.3 * noise[place - 1] + np.sqrt(1 - 0.09) * noise[place]
    before = chance.normal(0.6, 0.1, count)
    return before.clip(0, 1), (before + noise).clip(0, 1), _alone(count)


def turned(draw: Callable[..., Drawn]) -> Callable[..., Drawn]:
    """The same with the two runs swapped."""

    def swapped(chance: np.random.Generator, count: int, change: float = 0.0) -> Drawn:
        before, after, clusters = draw(chance, count, change) if change else draw(chance, count)
        return after, before, clusters

    return swapped


def of_five(draw: Callable[..., Drawn]) -> Callable[..., Drawn]:
    """The same in clusters of five."""
    return lambda chance, count, change=0.0: draw(chance, count, change, 5)


NULLS: dict[str, Callable[..., Drawn]] = {
    "verdicts": verdicts,
    "scores": scores,
    "rare zeros in the base": rare_zeros,
    "rare zeros in the candidate": turned(rare_zeros),
    "rare zeros, base 0.9": lambda chance, count: rare_zeros(chance, count, 0.9),
    "rare zeros, base 0.4": lambda chance, count: rare_zeros(chance, count, 0.4),
    "skewed scores": skewed,
    "few moved cases": few_moved,
    "verdicts, clusters of 5": of_five(verdicts),
    "scores, clusters of 5": of_five(scores),
    "11 customers, 3 single cases": customers,
    "neighbours correlated 0.3": neighbours,
}
DIFFERENCES: dict[str, tuple[Callable[..., Drawn], float]] = {
    "verdicts -0.15": (verdicts, -0.15),
    "verdicts +0.15": (verdicts, 0.15),
    "scores -0.10": (scores, -0.1),
    "scores +0.10": (scores, 0.1),
    "scores -0.05": (scores, -0.05),
    "scores +0.05": (scores, 0.05),
    "verdicts -0.15, clusters of 5": (of_five(verdicts), -0.15),
    "verdicts +0.15, clusters of 5": (of_five(verdicts), 0.15),
    "scores -0.10, clusters of 5": (of_five(scores), -0.1),
    "scores +0.10, clusters of 5": (of_five(scores), 0.1),
}


def shares(draw: Callable[[np.random.Generator, int], Drawn], count: int, rounds: int) -> Counter[str]:
    """How often each verdict came out, in percent."""
    chance = np.random.default_rng([count, rounds])
    found = Counter(verdict(draw(chance, count)) for _ in range(rounds))
    return Counter({name: 100 * number / rounds for name, number in found.items()})


def main() -> None:
    """Print both tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=1000)
    options.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    tables: dict[str, dict[str, dict[int, str]]] = {"false claims, % (better + worse)": {}, "shown, % (wrong way)": {}}
    false, shown = tables.values()
    for name, draw in NULLS.items():
        false[name] = {}
        for count in asked.sizes if draw is not customers else (102,):
            found = shares(draw, count, asked.rounds)
            false[name][count] = f"{found['better']:.1f}+{found['worse']:.1f}"
    for name, (draw, change) in DIFFERENCES.items():
        shown[name] = {}
        for count in asked.sizes:
            found = shares(lambda chance, n, of=(draw, change): of[0](chance, n, of[1]), count, asked.rounds)
            right, wrong = ("worse", "better") if change < 0 else ("better", "worse")
            shown[name][count] = f"{found[right]:.0f}" + (f" ({found[wrong]:.1f})" if found[wrong] else "")
    if asked.json:
        print(json.dumps(tables, indent=2))
        return
    for title, table in tables.items():
        print(f"\n{title:34}" + "".join(f"{count:>11}" for count in asked.sizes))
        for name, line in table.items():
            cells = line.values() if len(line) > 1 else [*line.values()]
            print(f"{name:34}" + "".join(f"{cell:>11}" for cell in cells))


if __name__ == "__main__":
    main()
