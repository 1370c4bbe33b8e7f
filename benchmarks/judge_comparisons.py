"""Coverage of the figures of compared judges, and errors of "not worse", by simulation.

    python benchmarks/judge_comparisons.py [--rounds 400] [--answers 500]

Judge A graded a run, and people labelled answers drawn evenly from both of its verdicts. Judge B grades the same
labelled answers. Each line has the share of rounds in which a 95% interval holds the truth, for the TPR, TNR and
accuracy of B and for its difference to A, and the share in which B is called not worse at a margin of 5 points. Where B
is worse by 5 points or more, that should be at most 2.5%.

    python benchmarks/judge_comparisons.py --equal-judges [--rounds 2000]

How often any of K equally good judges is shown to be worse than the one that the labels say is the best, with a
correction for the comparisons with that one, and for all pairs.
"""

from __future__ import annotations

import argparse
from collections import Counter
from math import comb

import numpy as np

from agentv.extensions.labels.labelled import PersonLabel, accuracy_difference, accuracy_of
from agentv.extensions.labels.posterior import JudgedAnswer, even_sizes, judge_counts
from agentv.stats.difference import Differences

MARGIN = 0.05

SETTINGS = [
    # truth, (TPR, TNR) of A, of B, labels
    (0.7, (0.9, 0.8), (0.9, 0.8), 60),
    (0.7, (0.9, 0.8), (0.85, 0.75), 60),
    (0.7, (0.95, 0.95), (0.9, 0.9), 100),
    (0.9, (0.98, 0.9), (0.92, 0.9), 100),
    (0.9, (0.97, 0.9), (0.97, 0.4), 100),
    (0.5, (0.9, 0.9), (0.9, 0.9), 200),
    (0.5, (0.97, 0.97), (0.97, 0.97), 200),
]

Judge = tuple[float, float]


def graded(chance: np.random.Generator, truth: np.ndarray, judge: Judge) -> np.ndarray:
    """The verdicts of a judge."""
    right = chance.random(len(truth)) < np.where(truth, *judge)
    return np.where(right, truth, ~truth)


def one_round(
    chance: np.random.Generator, answers: int, setting: tuple[float, Judge, Judge, int]
) -> dict[str, bool | float]:
    """What the intervals of one simulated comparison hold."""
    rate, of_a, of_b, labels = setting
    truth = chance.random(answers) < rate
    a, b = graded(chance, truth, of_a), graded(chance, truth, of_b)
    strata = [np.flatnonzero(a), np.flatnonzero(~a)]
    sizes = even_sizes(labels, [len(one) for one in strata])
    drawn = [chance.choice(stratum, size, replace=False) for stratum, size in zip(strata, sizes, strict=True)]
    known = {int(place) for places in drawn for place in places}
    counts = judge_counts(
        JudgedAnswer(bool(a[place]), bool(truth[place]) if place in known else None) for place in range(answers)
    )
    weights = [len(stratum) / size for stratum, size in zip(strata, sizes, strict=True)]
    places = [(int(place), weight) for found, weight in zip(drawn, weights, strict=True) for place in found]
    people = [PersonLabel(bool(truth[place]), bool(a[place]), weight) for place, weight in places]
    verdicts, others = ([bool(one[place]) for place, _ in places] for one in (b, a))
    found = accuracy_of(people, verdicts, counts)
    accuracies = [rate * tpr + (1 - rate) * tnr for tpr, tnr in (of_a, of_b)]
    difference = accuracy_difference(people, verdicts, others)
    assert difference is not None
    values = (
        ("TPR", found.tpr, of_b[0]),
        ("TNR", found.tnr, of_b[1]),
        ("accuracy", found.accuracy, accuracies[1]),
        ("difference", difference, accuracies[1] - accuracies[0]),
    )
    return {
        **{name: one is None or one.low <= value <= one.high for name, one, value in values},
        "not worse": difference.low > -MARGIN,
        "reach": difference.reach,
    }


def false_claims(judges: int, rounds: int, labels: int = 60, accuracy: float = 0.85) -> tuple[float, float]:
    """How often a difference is shown among equal judges: corrected for K - 1 comparisons, and for all pairs."""
    chance = np.random.default_rng(judges)
    known: dict[tuple[int, int], float] = {}
    alone, pairs = 0, 0
    for _ in range(rounds):
        right = (chance.random((judges, labels)) < accuracy).astype(float)
        best = right[int(right.sum(axis=1).argmax())]
        smallest = 1.0
        for other in right:
            moved = int((best > other).sum()), int((best < other).sum())
            if moved not in known:
                known[moved] = Differences(best.tolist(), other.tolist(), range(labels)).p()
            smallest = min(smallest, known[moved])
        alone += smallest <= 0.05 / (judges - 1)
        pairs += smallest <= 0.05 / comb(judges, 2)
    return alone / rounds, pairs / rounds


def main() -> None:
    """Print a row for each setting."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--answers", type=int, default=500)
    parser.add_argument("--equal-judges", action="store_true")
    given = parser.parse_args()
    if given.equal_judges:
        for judges in range(2, 11):
            alone, pairs = false_claims(judges, given.rounds)
            print(f"{judges:>3} judges: {alone:.1%} for comparisons with the best, {pairs:.1%} for all pairs")
        return
    print("| truth; TPR, TNR of A; of B; labels | B less A | TPR | TNR | accuracy | difference, ± | not worse |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for number, setting in enumerate(SETTINGS):
        rate, of_a, of_b, labels = setting
        chance = np.random.default_rng(number)
        total: Counter[str] = Counter()
        for _ in range(given.rounds):
            total.update(one_round(chance, given.answers, setting))
        shares = {name: value / given.rounds for name, value in total.items()}
        less = rate * (of_b[0] - of_a[0]) + (1 - rate) * (of_b[1] - of_a[1])
        cells = (
            f"{rate}; {of_a[0]}, {of_a[1]}; {of_b[0]}, {of_b[1]}; {labels}",
            f"{less * 100:+.1f}",
            *(f"{shares[name]:.1%}" for name in ("TPR", "TNR", "accuracy")),
            f"{shares['difference']:.1%}, {shares['reach'] * 100:.1f}",
            f"{shares['not worse']:.1%}",
        )
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
