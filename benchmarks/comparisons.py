"""How often `agentv compare` is wrong where nothing differs, and how often it shows what does.

    python benchmarks/comparisons.py [--rounds 1000] [--sizes 14 20 50] [--plans]

Each round draws two runs of the same cases and decides with the rule of the command, with all that belongs to it: mean
score and pass rate, clusters, corrections. Under a null both runs have the same true mean, and a verdict is false if it
is better or worse. Under a difference it is right if it says so, for losses and gains.

With `--plans`, what `agentv power` promises, and what the rule then shows of runs that are drawn case by case.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from agentv.model.run.matrix import Measure
from agentv.stats.difference import ROUNDING, Differences, Numbers, not_above_zero_each, unseen
from agentv.stats.power import Assumptions, ComparisonPlan, Way, _quantiles, _rates
from agentv.stats.rule import Evidence, decided

THRESHOLD = 0.8
ALPHA = 0.05
SIZES = (14, 20, 30, 50, 100, 200, 300)
Drawn = tuple[Sequence[float], Sequence[float], Sequence[int]]
"""Scores before and after, and the cluster of each case."""


def verdicts_of(rounds: Sequence[Drawn], alpha: float = ALPHA, threshold: float = THRESHOLD) -> list[str]:
    """The verdicts of the command over such cases: the mean score, and the pass rate where it is another measure.

    All rounds have the same clusters, so that they are tested at once; the first is held against the test of one.
    """
    before, after = (np.array([drawn[side] for drawn in rounds], dtype=float) for side in (0, 1))
    clusters = np.unique(rounds[0][2], return_inverse=True)[1]
    found = [evidence("mean score", before, after, clusters, alpha)]
    if not {0.0, 1.0}.issuperset(np.unique(before)):
        passed = [(one >= threshold).astype(float) for one in (before, after)]
        found.append(evidence("pass rate", *passed, clusters, alpha))
    alone = Differences(before[0].tolist(), after[0].tolist(), clusters.tolist()).evidence("mean score", 0.0)
    if abs(alone.p - found[0][0].p) > 0.03:
        raise AssertionError(f"{alone.p} alone, {found[0][0].p} among others")
    return [decided(one, alpha) for one in zip(*found, strict=True)]


def evidence(name: Measure, before: Numbers, after: Numbers, clusters: Numbers, alpha: float) -> list[Evidence]:
    """As `Differences.evidence`, of each row."""
    values = np.where(np.abs(after - before) > ROUNDING, after - before, 0.0)
    sums = values @ np.eye(clusters.max() + 1)[clusters]
    moved = (values != 0) * 1.0
    ways = [np.ones_like(before), before, before**2, after, after**2, values**2]
    summed = np.stack([(way * moved).sum(1) for way in ways], axis=1)
    changed, largest = (sums != 0).sum(1), np.bincount(clusters).max()
    reach, together = unseen(summed, (sums**2).sum(1), changed, largest)
    levels, ones = np.array([alpha / 2, alpha / 4]), np.ones((len(sums), sums.shape[1] + 1))
    above, below = (
        not_above_zero_each(np.column_stack((sign * sums, -reach * together)), ones, levels).tolist()
        for sign in (1, -1)
    )
    of = zip(values.mean(1).tolist(), changed.tolist(), above, below, strict=True)
    return [Evidence(name, mean, number, (up,), (down,)) for mean, number, up, down in of]


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
    level = chance.normal(0.5, 0.1, clusters.size)
    before, after = (level + chance.normal(0, 0.2, 14)[clusters] for _ in range(2))
    return before.clip(0, 1), after.clip(0, 1), clusters


def scores(chance: np.random.Generator, count: int, change: float = 0.0, size: int = 1) -> Drawn:
    """Scores around 0.65 that differ between runs with a standard deviation of 0.15; clusters move together."""
    clusters = np.arange(count) // size
    level = chance.normal(0.65, 0.1, count)

    def noise() -> Numbers:
        own, shared = chance.normal(0, 0.106, count), chance.normal(0, 0.106, clusters[-1] + 1)[clusters]
        return own if size == 1 else np.sqrt(0.5) * own + np.sqrt(0.5) * shared

    return (level + noise()).clip(0, 1), (level + change + noise()).clip(0, 1), clusters


def rare_zeros(chance: np.random.Generator, count: int, level: float = 0.7) -> Drawn:
    """The base is a little higher, but 0 in 5 % of the cases; the means are the same."""
    after = chance.normal(level, min(0.05, (1 - level) / 8), count)
    before = after + level * 0.05 / 0.95 + chance.normal(0, (1 - level) / 15, count)
    before[chance.random(count) < 0.05] = 0.0
    return before.clip(0, 1), after.clip(0, 1), _alone(count)


def rare_clusters(chance: np.random.Generator, count: int) -> Drawn:
    """The base is a little higher, but in 5 % of the clusters of five all of its cases score 0."""
    before, after, _ = rare_zeros(chance, count)
    clusters = np.arange(count) // 5
    before = after + 0.7 * 0.05 / 0.95 + chance.normal(0, 0.02, count)
    before[(chance.random(clusters[-1] + 1) < 0.05)[clusters]] = 0.0
    return before.clip(0, 1), after, clusters


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
    level = chance.normal(0.5, 0.1, count)

    def noise() -> Numbers:
        found = chance.normal(0, 0.1, count)
        for place in range(1, count):
            found[place] = 0.3 * found[place - 1] + np.sqrt(1 - 0.09) * found[place]
        return found

    return (level + noise()).clip(0, 1), (level + noise()).clip(0, 1), _alone(count)


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
    "rare zero clusters of 5 in the base": rare_clusters,
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


MEANS_ONLY = frozenset(name for name in NULLS if name.startswith("rare"))
"""Their mean scores are the same and their pass rates are not: every case passes."""


def shares(
    draw: Callable[[np.random.Generator, int], Drawn], count: int, rounds: int, threshold: float = THRESHOLD
) -> Counter[str]:
    """How often each verdict came out, in percent."""
    chance = np.random.default_rng([count, rounds])
    found = Counter(verdicts_of([draw(chance, count) for _ in range(rounds)], threshold=threshold))
    return Counter({name: 100 * number / rounds for name, number in found.items()})


def plans(rounds: int) -> None:
    """Print what is promised and what is shown, at the planned number of cases and at the number that is asked for."""
    print(f"\n{'plan':46}{'way':>6}{'promised':>10}{'shown':>8}{'needed':>8}{'shown':>8}")
    for name, cases, repeat, assumed, difference in PLANS:
        plan = ComparisonPlan(cases, repeat, assumed)
        for way in plan.ways(difference):
            needed = plan.needed(difference, way) or 0
            cells = f"{plan.chance(difference, way):>10.0%}{planned(plan, difference, way, rounds):>8.0%}{needed:>8}"
            more = planned(ComparisonPlan(needed, repeat, assumed), difference, way, rounds)
            print(f"{name:46}{way:>6}{cells}{more:>8.0%}", flush=True)


PLANS: tuple[tuple[str, int, int, Assumptions, float], ...] = (
    ("verdicts, 20 cases, 60 % by 30", 20, 1, Assumptions(rate=0.6), 0.3),
    ("verdicts, 100 cases, 80 % by 15", 100, 1, Assumptions(), 0.15),
    ("verdicts, 200 cases, 80 % by 10", 200, 1, Assumptions(), 0.1),
    ("verdicts, 100 cases of 3 samples, 80 % by 10", 100, 3, Assumptions(), 0.1),
    ("verdicts, 100 cases in clusters of 5, by 20", 100, 1, Assumptions(cluster_size=5, correlation=0.3), 0.2),
    ("scores of 0.7 (SD 0.2), 14 cases, by 0.25", 14, 1, Assumptions(rate=0.7, deviation=0.2), 0.25),
    ("scores of 0.7 (SD 0.2), 50 cases, by 0.1", 50, 1, Assumptions(rate=0.7, deviation=0.2), 0.1),
    ("scores of 0.8 (SD 0.15), 100 cases, by 0.05", 100, 1, Assumptions(deviation=0.15), 0.05),
    (
        "scores of 0.7, 100 cases in clusters of 5, by 0.1",
        100,
        1,
        Assumptions(0.7, cluster_size=5, correlation=0.3, deviation=0.2),
        0.1,
    ),
)


def planned(plan: ComparisonPlan, difference: float, way: Way, rounds: int) -> float:
    """How often the rule shows the difference in runs that are drawn case by case, as the plan assumes them."""
    from scipy.special import ndtr, ndtri

    assumed, chance = plan.assumed, np.random.default_rng(11)
    wanted, after_mean = (
        ("better", assumed.rate + difference) if way == "rise" else ("worse", assumed.rate - difference)
    )
    size = assumed.cluster_size
    clusters = np.repeat(np.arange(round(plan.cases / size)), size)
    count, share = clusters.size, assumed.correlation

    def hardness() -> np.ndarray:
        common = chance.standard_normal(clusters[-1] + 1)[clusters]
        return ndtr(np.sqrt(share) * common + np.sqrt(1 - share) * chance.standard_normal(count))

    def side(mean: float, hard: np.ndarray) -> np.ndarray:
        if assumed.deviation is None:
            return (chance.random((count, plan.repeat)) < _rates(mean, assumed.alike, hard)[:, None]) * 1.0
        noise = chance.standard_normal((count, plan.repeat))
        places = np.sqrt(assumed.alike) * ndtri(hard)[:, None] + np.sqrt(1 - assumed.alike) * noise
        return np.interp(ndtr(places), *_quantiles(mean, assumed.deviation**2))

    def pair() -> Drawn:
        own, other, turns = hardness(), hardness(), hardness()
        before, after = side(assumed.rate, own), side(after_mean, np.where(turns < assumed.shared, own, other))
        return before.mean(1), after.mean(1), clusters

    return verdicts_of([pair() for _ in range(rounds)], assumed.alpha, assumed.threshold).count(wanted) / rounds


def main() -> None:
    """Print the tables that were asked for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=1000)
    options.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options.add_argument("--plans", action="store_true")
    asked = options.parse_args()
    if asked.plans:
        plans(asked.rounds)
        return
    print(f"{'false claims, % (better + worse)':34}" + "".join(f"{count:>11}" for count in asked.sizes))
    for name, draw in NULLS.items():
        print(f"{name:34}", end="", flush=True)
        for count in asked.sizes if draw is not customers else (102,):
            found = shares(draw, count, asked.rounds, 0.0 if name in MEANS_ONLY else THRESHOLD)
            print(f"{found['better']:.1f}+{found['worse']:.1f}".rjust(11), end="", flush=True)
        print()
    print(f"\n{'shown, % (the wrong way)':34}" + "".join(f"{count:>11}" for count in asked.sizes))
    for name, (draw, change) in DIFFERENCES.items():
        print(f"{name:34}", end="", flush=True)
        for count in asked.sizes:
            found = shares(lambda chance, n, of=(draw, change): of[0](chance, n, of[1]), count, asked.rounds)
            right, wrong = ("worse", "better") if change < 0 else ("better", "worse")
            print(f"{found[right]:.0f} ({found[wrong]:.1f})".rjust(11), end="", flush=True)
        print()


if __name__ == "__main__":
    main()
