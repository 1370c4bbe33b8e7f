#!/usr/bin/env python3
"""Error rate of `eval --against RUN --until decided`, and the number of cases that it draws, by simulation.

    benchmarks/sequential_comparison.py
    benchmarks/sequential_comparison.py --rounds 2000 --cases 1000 --margin 0.05

Each round draws the cases of a suite in random order and calls `stats.betting.PairedBets`, the rule of the command,
after every one of them. `population`: cases are drawn from an infinite population. `suite`: the cases are fixed, their
order is random, and the mean over all of them is `difference`. The last column is the error rate of testing
with McNemar after every tenth case and stopping at p ≤ alpha.

A wrong claim is `better` if the mean is not above +margin, `worse` if it is not below −margin, `non-inferior`
if it is not above −margin.
"""

from __future__ import annotations

import argparse
import random
from statistics import median

from scipy.stats import binomtest

from agentv.stats.samples.betting import PairedBets

SETTINGS = ((0.0, 0.1), (0.0, 0.3), (0.0, 0.6), (-0.03, 0.1), (-0.05, 0.15), (-0.1, 0.2), (-0.17, 0.25), (0.05, 0.15))
"""The mean difference, and the share of cases whose verdict changes."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=300)
    options.add_argument("--cases", type=int, default=1000)
    options.add_argument("--margin", type=float, default=0.0)
    options.add_argument("--alpha", type=float, default=0.05)
    given = options.parse_args()
    print(f"{given.rounds} rounds of {given.cases} cases, alpha {given.alpha}, margin {given.margin}")
    print(f"{'cases of':>10} {'diff':>6} {'change':>6} {'wrong':>7} {'shown':>7} {'drawn':>6} {'cover':>7} {'peek':>7}")
    for kind in ("population", "suite"):
        for difference, changing in SETTINGS:
            dice = random.Random(1)
            found = [one_round(dice, kind, (difference, changing), given) for _ in range(given.rounds)]
            wrong, shown, peeked, covered = (sum(one[place] for one in found) / given.rounds for place in range(4))
            drawn = median(one[4] for one in found)
            said = f"{kind:>10} {difference:>6} {changing:>6} {wrong:>7.1%} {shown:>7.1%} {drawn:>6.0f} {covered:>7.1%}"
            print(f"{said} {peeked:>7.1%}", flush=True)


def one_round(
    dice: random.Random, kind: str, truth: tuple[float, float], given: argparse.Namespace
) -> tuple[bool, bool, bool, bool, int]:
    """Whether a claim was wrong, was made, was wrong with repeated tests; whether the bounds hold; the cases drawn."""
    difference, changing = truth
    bets = PairedBets(given.alpha, given.margin)
    wins = losses = 0
    peeked = False
    for number, one in enumerate(drawn_of(dice, kind, difference, changing, given.cases), 1):
        bets.add(one)
        wins, losses = wins + (one > 0), losses + (one < 0)
        if not peeked and number % 10 == 0 and binomtest(wins, wins + losses or 1).pvalue <= given.alpha:
            peeked = True
            bad_peek = is_wrong("better" if wins > losses else "worse", difference, given.margin)
    low, high = bets.bounds
    wrong = bets.claim is not None and is_wrong(bets.claim, difference, given.margin)
    right = bets.claim is not None and not wrong
    return wrong, right, peeked and bad_peek, low <= difference <= high, bets.drawn


def drawn_of(dice: random.Random, kind: str, difference: float, changing: float, cases: int) -> list[float]:
    """The differences of the cases, in the order in which they are drawn."""
    won, lost = (changing + difference) / 2, (changing - difference) / 2
    if kind == "population":
        return dice.choices([1.0, -1.0, 0.0], [won, lost, 1 - changing], k=cases)
    fixed = [1.0] * round(won * cases) + [-1.0] * round(lost * cases)
    fixed += [0.0] * (cases - len(fixed))
    dice.shuffle(fixed)
    return fixed


def is_wrong(claim: str, difference: float, margin: float) -> bool:
    """Whether a claim is wrong for this true mean difference."""
    holds = {"better": difference > margin, "worse": difference < -margin, "non-inferior": difference > -margin}
    return not holds[claim]


if __name__ == "__main__":
    main()
