"""Coverage and width of the corrected rate of runs in which checks decide a part of the trials, by simulation.

    python benchmarks/run_rates.py [--rounds 300]

Every setting has a true pass rate of the trials that a judge decides, a share that checks fail, a judge with a TPR and
a TNR, and labels drawn evenly from both verdicts of the judge on all trials. Nominal is 95%.
"""

from __future__ import annotations

import argparse

import numpy as np

from agentv.extensions.labels.posterior import Estimated, JudgedAnswer, Observation, estimated
from agentv.extensions.labels.run_rates import JudgedPart, RunParts, run_rate_draws

Setting = tuple[float, float, float, float, int, int]
"""The true rate, the share that is decided, TPR, TNR, trials and labels."""

SETTINGS: tuple[Setting, ...] = (
    (0.9, 0.2, 0.95, 0.7, 200, 40),
    (0.7, 0.3, 0.9, 0.9, 200, 60),
    (0.95, 0.05, 0.97, 0.5, 300, 60),
    (0.6, 0.5, 0.9, 0.8, 100, 20),
)


def simulated(chance: np.random.Generator, setting: Setting, cluster: int) -> Estimated:
    """The corrected rate of one run."""
    truth, share, tpr, tnr, trials, labels = setting
    groups = trials // cluster
    rates = chance.beta(truth * 2, (1 - truth) * 2, groups) if cluster > 1 else np.full(groups, truth)
    decided = np.repeat(chance.random(groups) < share, cluster)
    people = chance.random(trials) < np.repeat(rates, cluster)
    judge = chance.random(trials) < np.where(people, tpr, 1 - tnr)
    labelled = np.zeros(trials, dtype=bool)
    for verdict in (True, False):
        stratum = np.flatnonzero(judge == verdict)
        labelled[chance.choice(stratum, min(labels // 2, len(stratum)), replace=False)] = True
    answers = [
        JudgedAnswer(bool(judge[one]), bool(people[one]) if labelled[one] else None, ("cluster", one // cluster))
        for one in np.flatnonzero(~decided)
    ]
    failed = [Observation(False, ("cluster", one // cluster)) for one in np.flatnonzero(decided)]
    draws = run_rate_draws(RunParts([JudgedPart(answers)], failed))
    assert draws is not None  # labels are of the run itself
    return estimated(draws)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    chance = np.random.default_rng(1)
    print(f"{'truth':>6} {'decided':>8} {'labels':>7} {'cluster':>8} {'coverage':>9} {'width':>7}")
    for cluster in (1, 4):
        for setting in SETTINGS:
            truth = setting[0] * (1 - setting[1])
            found = [simulated(chance, setting, cluster) for _ in range(rounds)]
            coverage = sum(one.low <= truth <= one.high for one in found) / rounds
            width = sum(one.high - one.low for one in found) / rounds
            print(f"{truth:6.3f} {setting[1]:8.0%} {setting[5]:7} {cluster:8} {coverage:9.1%} {width:7.1%}", flush=True)


if __name__ == "__main__":
    main()
