"""Coverage and width of mean scores corrected by points that people give, by simulation.

    python benchmarks/corrected_mean_scores.py [--rounds 400] [--answers 300]

People and the judge give five points, as scores 0, ¼, … 1. The judge is off by a bias and noise, and passes from ¾.
Labels are drawn evenly from both verdicts. Nominal is 95%; with 400 rounds a coverage is known to about ±2 points.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

from agentv.extensions.labels.stats.mean_score import ScoredAnswer, corrected_mean

SHAPES = {"even": (2, 2), "high": (6, 1), "higher": (14, 1), "near the end": (30, 1)}
"""Beta distributions of what people think of the answers."""

JUDGES = {"good": (0.1, 0.15), "bad": (-0.1, 0.3)}
"""Bias and noise."""

WITHIN = 0.15
"""Standard deviation of answers in a cluster."""


def main() -> None:
    """Print a line for each setting."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=400)
    options.add_argument("--answers", type=int, default=300)
    given = options.parse_args()
    print("people        judge  labels cluster  truth  coverage  width")
    for people, judge, labels, cluster in product(SHAPES, JUDGES, (20, 60), (1, 5)):
        chance = np.random.default_rng(4)
        truth = float(points(chance, people, 400_000, cluster).mean())
        found = [interval(chance, people, judge, (given.answers, labels, cluster)) for _ in range(given.rounds)]
        known = [one for one in found if one is not None]
        held = sum(low <= truth <= high for low, high in known) / len(known)
        width = sum(high - low for low, high in known) / len(known)
        print(f"{people:13} {judge:6}{labels:7}{cluster:8}{truth:7.3f}{held:10.1%}{width:7.3f}", flush=True)


def points(chance: np.random.Generator, people: str, answers: int, cluster: int) -> np.ndarray:
    """Scores that people would give."""
    means = np.repeat(chance.beta(*SHAPES[people], answers // cluster), cluster)
    noise = chance.normal(0, WITHIN, len(means)) if cluster > 1 else 0.0
    return np.clip(np.round((means + noise) * 4) / 4, 0, 1)


def interval(
    chance: np.random.Generator, people: str, judge: str, sizes: tuple[int, int, int]
) -> tuple[float, float] | None:
    """The interval of one run."""
    answers, labels, cluster = sizes
    truth = points(chance, people, answers, cluster)
    seen = np.clip(np.round((truth + chance.normal(*JUDGES[judge], len(truth))) * 4) / 4, 0, 1)
    drawn: set[int] = set()
    for verdict in (True, False):
        places = np.flatnonzero((seen >= 0.75) == verdict)
        drawn.update(chance.choice(places, min(len(places), labels // 2), replace=False).tolist())
    found = corrected_mean(
        ScoredAnswer(score >= 0.75, score, person if place in drawn else None, place // cluster)
        for place, (score, person) in enumerate(zip(seen.tolist(), truth.tolist(), strict=True))
    )
    return None if found is None else (found.low, found.high)


if __name__ == "__main__":
    main()
