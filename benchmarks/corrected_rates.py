"""Coverage and width of pass rates corrected by labels, beside what else could be done, by simulation.

    python benchmarks/corrected_rates.py [--rounds 1000] [--answers 500] [--full]

Every setting has a true pass rate, a judge with a TPR and a TNR, and a number of labelled answers. Nominal is 95%; with
1000 rounds a simulated 95% is accurate to about ±1.4 points. `--full` takes five minutes. Columns of coverage and of
mean width in points:

    by verdict   labels drawn evenly from both verdicts, post-stratified (agentv's `label`)
    from all     labels drawn from all answers, post-stratified
    PPI++        prediction-powered inference with the best weight, normal interval, labels from all answers; the
                 numbers are those of ppi-python 0.2.3, `ppi_mean_ci`
    Rogan-Gladen agentv's, labels of another run of the same judge, where people pass 70%; rounds in which the labels do
                 not show that the judge is better than chance give no interval, and are not counted
    labels       the labels alone, Wilson's interval
    naive        the judge's own rate, Wilson's interval
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import NamedTuple

import numpy as np

from agentv.extensions.labels.posterior import (
    Counted,
    JudgeCounts,
    JudgedAnswer,
    corrected_rate,
    even_sizes,
    judge_counts,
    transferred_rate,
)
from agentv.stats.intervals.proportion import wilson_interval

Interval = tuple[float, float]
DRAWS = 2000
"""Draws of a round; agentv itself takes 40,000."""

USUAL = [(0.5, 0.8, 0.8), (0.8, 0.9, 0.7), (0.8, 0.7, 0.9), (0.9, 0.95, 0.5), (0.97, 0.97, 0.5), (0.97, 0.8, 0.8)]
CORRELATION = 0.3
"""Of answers in a cluster."""

ELSEWHERE = 0.7
"""Pass rate by people in the run whose labels are transferred."""

AIM = (0.93, 0.97)


class Setting(NamedTuple):
    """True rate, TPR, TNR, labels, answers in a cluster."""

    truth: float
    tpr: float
    tnr: float
    labels: int
    cluster: int = 1


class Table(NamedTuple):
    """Answers by (judge, person)."""

    passed_right: int
    passed_wrong: int
    failed_wrong: int
    failed_right: int

    @property
    def verdicts(self) -> Counted:
        """Of the judge."""
        return Counted(self[0] + self[1], self[2] + self[3])

    def counts(self, verdicts: Counted) -> JudgeCounts:
        """What these labels tell of a judge with these verdicts."""
        return JudgeCounts(Counted(self[0], self[1]), Counted(self[2], self[3]), verdicts)


@dataclass(frozen=True)
class Round:
    """What one simulated run and its labels show."""

    by_verdict: JudgeCounts
    from_all: JudgeCounts
    elsewhere: JudgeCounts
    verdicts: Counted
    run: Table
    labelled: Table
    seed: int


def main() -> None:
    """Print a line for each setting, then what the columns have in common."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=1000)
    options.add_argument("--answers", type=int, default=500)
    options.add_argument("--full", action="store_true", help="all combinations, not only six")
    given = options.parse_args()
    found: dict[str, list[float]] = {name: [] for name in METHODS}
    print(f"{'truth  TPR  TNR labels cluster':32}" + "".join(f"{name:>16}" for name in METHODS))
    for setting in settings(full=given.full):
        line = ""
        for name, (held, width) in simulated(setting, given.rounds, given.answers).items():
            line += f"{'none':>16}" if held is None else f"{held:>9.1%} {width * 100:5.1f}p"
            found[name] += [] if held is None else [held]
        truth, tpr, tnr, labels, cluster = setting
        print(f"{truth:5.2f} {tpr:4.2f} {tnr:4.2f} {labels:6} {cluster:7}{'':4}{line}", flush=True)
    low, high = AIM
    for name, show in (
        ("lowest and highest coverage", lambda held: f"{min(held):.1%} {max(held):6.1%}"),
        ("mean coverage", lambda held: f"{sum(held) / len(held):.1%}"),
        (f"settings below {low:.0%}", lambda held: f"{sum(one < low for one in held)} of {len(held)}"),
        (f"settings above {high:.0%}", lambda held: f"{sum(one > high for one in held)} of {len(held)}"),
    ):
        print(f"{name:32}" + "".join(f"{show(held) if held else 'none':>16}" for held in found.values()))


def settings(*, full: bool) -> Iterator[Setting]:
    """The settings of the table."""
    judges = product((0.5, 0.8, 0.9, 0.97), (0.5, 0.8, 0.97), (0.5, 0.8, 0.97)) if full else USUAL
    for judge, labels in product(judges, (20, 60, 200)):
        yield Setting(*judge, labels)
    for judge, labels in product(USUAL if full else USUAL[1:2], (20, 60, 200)):
        yield Setting(*judge, labels, 5)
    for labels in (20, 60, 200):
        yield Setting(*USUAL[1], labels, 25)


def simulated(setting: Setting, rounds: int, answers: int) -> dict[str, tuple[float | None, float]]:
    """Coverage and mean width of each method; a coverage is None if most rounds give no interval."""
    held, widths, counted = (dict.fromkeys(METHODS, 0.0) for _ in range(3))
    drawn = independent if setting.cluster == 1 else clustered
    for one in drawn(np.random.default_rng(1), setting, rounds, answers):
        for name, method in METHODS.items():
            interval = method(one)
            if interval is not None:
                counted[name] += 1
                held[name] += interval[0] <= setting.truth <= interval[1]
                widths[name] += interval[1] - interval[0]
    return {
        name: (held[name] / counted[name] if counted[name] >= rounds / 2 else None, widths[name] / (counted[name] or 1))
        for name in METHODS
    }


def independent(chance: np.random.Generator, setting: Setting, rounds: int, answers: int) -> Iterator[Round]:
    """Runs without clusters, which their counts describe: all are drawn at once."""
    runs = tables(chance, setting, setting.truth, rounds, answers)
    others = tables(chance, setting, ELSEWHERE, rounds, answers)
    by_verdict, elsewhere = (labelled_evenly(chance, one, setting.labels) for one in (runs, others))
    from_all = chance.multivariate_hypergeometric
    for place, row in enumerate(runs):
        run = Table(*row.tolist())
        labelled = Table(*from_all(run, setting.labels).tolist())
        other = Table(*others[place].tolist())
        yield Round(
            Table(*by_verdict[place].tolist()).counts(run.verdicts),
            labelled.counts(run.verdicts),
            Table(*elsewhere[place].tolist()).counts(other.verdicts),
            run.verdicts,
            run,
            labelled,
            place,
        )


def tables(chance: np.random.Generator, setting: Setting, truth: float, rounds: int, answers: int) -> np.ndarray:
    """Rows of answers by (judge, person)."""
    tpr, tnr = setting.tpr, setting.tnr
    return chance.multinomial(
        answers, (truth * tpr, (1 - truth) * (1 - tnr), truth * (1 - tpr), (1 - truth) * tnr), rounds
    )


def labelled_evenly(chance: np.random.Generator, runs: np.ndarray, labels: int) -> np.ndarray:
    """Labels drawn evenly from both verdicts."""
    split = np.array([even_sizes(labels, [int(one[:2].sum()), int(one[2:].sum())]) for one in runs])
    found = np.empty_like(runs)
    for first, size in ((0, split[:, 0]), (2, split[:, 1])):
        found[:, first] = chance.hypergeometric(runs[:, first], runs[:, first + 1], size)
        found[:, first + 1] = size - found[:, first]
    return found


def clustered(chance: np.random.Generator, setting: Setting, rounds: int, answers: int) -> Iterator[Round]:
    """Runs whose clusters have rates of their own."""
    for place in range(rounds):
        run, other = (ClusteredRun(chance, answers, setting, truth) for truth in (setting.truth, ELSEWHERE))
        chosen = run.from_all(setting.labels)
        yield Round(
            run.counts(run.evenly(setting.labels)),
            run.counts(chosen),
            other.counts(other.evenly(setting.labels)),
            run.counts(chosen).verdicts,
            run.table(np.arange(len(run.people))),
            run.table(chosen),
            place,
        )


class ClusteredRun:
    """Answers, what people would say of each, and what the judge says."""

    def __init__(self, chance: np.random.Generator, answers: int, setting: Setting, truth: float) -> None:
        groups = answers // setting.cluster
        shape = (1 - CORRELATION) / CORRELATION
        rates = np.repeat(chance.beta(truth * shape, (1 - truth) * shape, groups), setting.cluster)
        self.people = chance.random(len(rates)) < rates
        self.judge = chance.random(len(rates)) < np.where(self.people, setting.tpr, 1 - setting.tnr)
        self.clusters = np.repeat(np.arange(groups), setting.cluster)
        self.chance = chance

    def evenly(self, labels: int) -> np.ndarray:
        """Places of answers, drawn evenly from both verdicts."""
        strata = [np.flatnonzero(self.judge), np.flatnonzero(~self.judge)]
        split = even_sizes(labels, [len(strata[0]), len(strata[1])])
        return np.concatenate([self.chance.choice(*one, replace=False) for one in zip(strata, split, strict=True)])

    def from_all(self, labels: int) -> np.ndarray:
        """Places of random answers."""
        return self.chance.choice(len(self.people), labels, replace=False)

    def counts(self, chosen: np.ndarray) -> JudgeCounts:
        """What labels of these answers tell."""
        labelled = set(chosen.tolist())
        rows = zip(self.judge.tolist(), self.people.tolist(), self.clusters.tolist(), strict=True)
        return judge_counts(
            JudgedAnswer(judge, person if place in labelled else None, cluster)
            for place, (judge, person, cluster) in enumerate(rows)
        )

    def table(self, chosen: np.ndarray) -> Table:
        """These answers by (judge, person)."""
        judge, people = self.judge[chosen], self.people[chosen]
        cells = ((judge & people), (judge & ~people), (~judge & people), (~judge & ~people))
        return Table(*(int(one.sum()) for one in cells))


def by_verdict(one: Round) -> Interval:
    """agentv's, labels drawn evenly from both verdicts."""
    found = corrected_rate(one.by_verdict, one.seed, draws=DRAWS)
    return found.low, found.high


def from_all(one: Round) -> Interval:
    """agentv's, labels drawn from all answers."""
    found = corrected_rate(one.from_all, one.seed, draws=DRAWS)
    return found.low, found.high


def ppi(one: Round) -> Interval:
    """A. N. Angelopoulos, J. C. Duchi, T. Zrnic, "PPI++", arXiv 2311.01453, for a mean."""
    both, judge_only, person_only, _ = one.labelled
    labels, answers = sum(one.labelled), sum(one.run)
    rest = answers - labels
    judge, person = (both + judge_only) / labels, (both + person_only) / labels
    everywhere = (one.run[0] + one.run[1]) / answers
    unlabelled = (one.run[0] + one.run[1] - both - judge_only) / rest
    spread = everywhere * (1 - everywhere) * answers / (answers - 1)
    together = both / labels - judge * person
    weight = min(1.0, max(0.0, together / ((1 + labels / rest) * spread))) if spread else 0.0
    mean = weight * unlabelled + person - weight * judge
    residual = person * (1 - person) - 2 * weight * together + weight**2 * judge * (1 - judge)
    error = sqrt(weight**2 * unlabelled * (1 - unlabelled) / rest + max(0.0, residual) / labels)
    return mean - 1.959964 * error, mean + 1.959964 * error


def rogan_gladen(one: Round) -> Interval | None:
    """agentv's, labels of another run."""
    found = transferred_rate(one.elsewhere, one.verdicts, one.seed, draws=DRAWS)
    return None if found is None else (found.low, found.high)


def labels_alone(one: Round) -> Interval:
    """Wilson's interval of the labels."""
    return wilson_interval(one.labelled[0] + one.labelled[2], sum(one.labelled))


def naive(one: Round) -> Interval:
    """Wilson's interval of the judge's verdicts."""
    return wilson_interval(one.run[0] + one.run[1], sum(one.run))


METHODS: dict[str, Callable[[Round], Interval | None]] = {
    "by verdict": by_verdict,
    "from all": from_all,
    "PPI++": ppi,
    "Rogan-Gladen": rogan_gladen,
    "labels": labels_alone,
    "naive": naive,
}

if __name__ == "__main__":
    main()
