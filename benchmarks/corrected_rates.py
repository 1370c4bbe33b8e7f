"""Coverage and width of pass rates corrected by labels, beside what else could be done, by simulation.

    python benchmarks/corrected_rates.py [--rounds 500] [--answers 500] [--full]

Every setting has a true pass rate, a judge with a TPR and a TNR, and a number of labelled answers. Nominal is 95%; with
500 rounds a simulated 95% is accurate to about ±2%. Columns of coverage and of mean width in points:

    by stratum   labels drawn evenly from both verdicts, post-stratified (agentv's `label`)
    at random    labels drawn from all answers, post-stratified
    PPI++        prediction-powered inference with the best weight, normal interval, labels at random
    Rogan-Gladen agentv's, labels of another run of the same judge
    labels       the labels alone, Wilson's interval
    naive        the judge's own rate, Wilson's interval
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from agentv.stats.intervals.proportion import wilson_interval
from agentv.stats.judges.corrected import even_split, transferred_rate
from agentv.stats.judges.posterior import Counted, JudgeCounts, JudgedAnswer, JudgeDraws, estimated, judge_counts

Interval = tuple[float, float]
DRAWS = 4000
"""Draws of a round; agentv itself takes 40,000."""

SETTINGS = [(0.5, 0.8, 0.8), (0.8, 0.9, 0.7), (0.8, 0.7, 0.9), (0.9, 0.95, 0.5), (0.97, 0.97, 0.5), (0.97, 0.8, 0.8)]


class Run:
    """Answers, what people would say of each, and what the judge says."""

    def __init__(self, chance: np.random.Generator, answers: int, truth: float, judge: Interval, cluster: int) -> None:
        groups = answers // cluster
        if cluster > 1:  # the rates of clusters vary: an intraclass correlation of 0.3
            shape = 0.7 / 0.3
            rates = np.repeat(chance.beta(truth * shape, (1 - truth) * shape, groups), cluster)
        else:
            rates = np.full(answers, truth)
        self.people = chance.random(len(rates)) < rates
        self.judge = chance.random(len(rates)) < np.where(self.people, judge[0], 1 - judge[1])
        self.clusters = np.repeat(np.arange(groups), cluster)
        self.clustered = cluster > 1
        self.chance = chance

    def stratified(self, labels: int) -> JudgeCounts:
        """What labels drawn evenly from both verdicts tell."""
        strata = [np.flatnonzero(self.judge), np.flatnonzero(~self.judge)]
        split = even_split(labels, len(strata[0]), len(strata[1]))
        chosen = [self.chance.choice(one, size, replace=False) for one, size in zip(strata, split, strict=True)]
        return self._counts(*chosen)

    def random(self, labels: int) -> JudgeCounts:
        """What labels drawn from all answers tell."""
        chosen = self.drawn(labels)
        return self._counts(chosen[self.judge[chosen]], chosen[~self.judge[chosen]])

    def drawn(self, labels: int) -> np.ndarray:
        """Places of random answers."""
        return self.chance.choice(len(self.people), labels, replace=False)

    def _counts(self, passed: np.ndarray, failed: np.ndarray) -> JudgeCounts:
        if not self.clustered:  # the same, faster
            counts = [(one.sum(), (~one).sum()) for one in (self.people[passed], self.people[failed], self.judge)]
            return JudgeCounts(*(Counted(int(yes), int(no)) for yes, no in counts))
        labelled = {*passed.tolist(), *failed.tolist()}
        return judge_counts(
            JudgedAnswer(
                bool(self.judge[one]),
                bool(self.people[one]) if one in labelled else None,
                int(self.clusters[one]) if self.clustered else None,
            )
            for one in range(len(self.judge))
        )


def main() -> None:
    """Print a line for each setting, then the extremes of each column."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=500)
    options.add_argument("--answers", type=int, default=500)
    options.add_argument("--full", action="store_true", help="all combinations, not only ten or so")
    given = options.parse_args()
    names = list(METHODS)
    print(f"{'truth  TPR  TNR labels cluster':32}" + "".join(f"{name:>16}" for name in names))
    lows, highs = dict.fromkeys(names, 1.0), dict.fromkeys(names, 0.0)
    for setting in settings(full=given.full):
        found = simulated(setting, given.rounds, given.answers)
        truth, tpr, tnr, labels, cluster = setting
        line = "".join(f"{held:>9.1%} {width * 100:5.1f}p" for held, width in found.values())
        print(f"{truth:5.2f} {tpr:4.2f} {tnr:4.2f} {labels:6} {cluster:7}{'':4}{line}", flush=True)
        for name, (held, _) in found.items():
            lows[name], highs[name] = min(lows[name], held), max(highs[name], held)
    print(f"{'lowest and highest coverage':32}" + "".join(f"{lows[one]:>8.1%}–{highs[one]:6.1%} " for one in names))


def settings(*, full: bool) -> Iterator[tuple[float, float, float, int, int]]:
    """True rate, TPR, TNR, labels, answers in a cluster."""
    judges = product((0.5, 0.8, 0.9, 0.97), (0.5, 0.8, 0.97), (0.5, 0.8, 0.97)) if full else SETTINGS
    for (truth, tpr, tnr), labels in product(judges, (20, 60, 200)):
        yield truth, tpr, tnr, labels, 1
    yield from ((0.8, 0.9, 0.7, labels, 5) for labels in (20, 60, 200))


def simulated(
    setting: tuple[float, float, float, int, int], rounds: int, answers: int
) -> dict[str, tuple[float, float]]:
    """Coverage and mean width of each method."""
    truth, tpr, tnr, labels, cluster = setting
    chance = np.random.default_rng(1)
    held, widths = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0.0)
    for _ in range(rounds):
        run = Run(chance, answers, truth, (tpr, tnr), cluster)
        other = Run(chance, answers, 0.7, (tpr, tnr), cluster)
        for name, method in METHODS.items():
            low, high = method(run, other, labels)
            held[name] += low <= truth <= high
            widths[name] += high - low
    return {name: (held[name] / rounds, widths[name] / rounds) for name in METHODS}


def by_stratum(run: Run, _: Run, labels: int) -> Interval:
    return posterior(run.stratified(labels))


def at_random(run: Run, _: Run, labels: int) -> Interval:
    return posterior(run.random(labels))


def posterior(counts: JudgeCounts) -> Interval:
    found = estimated(JudgeDraws.of(counts, draws=DRAWS).truth)
    return found.low, found.high


def ppi(run: Run, _: Run, labels: int) -> Interval:
    """A. N. Angelopoulos, J. C. Duchi, T. Zrnic, "PPI++", arXiv 2311.01453, for a mean."""
    chosen = run.drawn(labels)
    people, judge, rest = run.people[chosen] * 1.0, run.judge[chosen] * 1.0, run.judge * 1.0
    ratio = labels / len(rest)
    spread = rest.var(ddof=1)
    weight = float(np.cov(people, judge)[0, 1] / ((1 + ratio) * spread)) if spread > 0 else 0.0
    weight = min(1.0, max(0.0, weight))
    mean = weight * rest.mean() + (people - weight * judge).mean()
    error = np.sqrt(weight**2 * spread / len(rest) + (people - weight * judge).var(ddof=1) / labels)
    return mean - 1.96 * error, mean + 1.96 * error


def rogan_gladen(run: Run, other: Run, labels: int) -> Interval:
    judge = int(run.judge.sum())
    found = transferred_rate(other.stratified(labels), Counted(judge, len(run.judge) - judge))
    return (found.low, found.high) if found else (0.0, 1.0)


def labels_alone(run: Run, _: Run, labels: int) -> Interval:
    return wilson_interval(int(run.people[run.drawn(labels)].sum()), labels)


def naive(run: Run, _: Run, __: int) -> Interval:
    return wilson_interval(int(run.judge.sum()), len(run.judge))


METHODS: dict[str, Callable[[Run, Run, int], Interval]] = {
    "by stratum": by_stratum,
    "at random": at_random,
    "PPI++": ppi,
    "Rogan-Gladen": rogan_gladen,
    "labels": labels_alone,
    "naive": naive,
}

if __name__ == "__main__":
    main()
