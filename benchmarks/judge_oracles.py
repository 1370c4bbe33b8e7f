"""Numbers of other programs that the tests of `stats/judges` hold agentv's to.

    pip install ppi-python==0.2.3 statsmodels==0.15.0 glide-py==0.11.0  # glide-py needs Python 3.12
    PYTHONPATH=tests python benchmarks/judge_oracles.py

They are no dependencies of the tests, since ppi-python brings numba and scikit-learn.
"""

import numpy as np
from glide.estimators import StratifiedPPIMeanEstimator
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
from statsmodels.stats.inter_rater import cohens_kappa

from doubles.labelled_scores import scored_answers, verdicts


def main() -> None:
    """Print them."""
    rows = scored_answers(900)
    passed, judge = (np.array([row[place] for row in rows], dtype=float) for place in (0, 1))
    people = np.array([np.nan if row[2] is None else row[2] for row in rows])
    found = StratifiedPPIMeanEstimator().estimate(people, judge, passed).confidence_interval
    print("STRATIFIED", found.mean, found.lower_bound, found.upper_bound)
    rows = [row for row in rows if row[0]]
    labelled = [(row[2], row[1]) for row in rows if row[2] is not None]
    rest = np.array([row[1] for row in rows if row[2] is None])
    truth, seen = np.array(labelled).T
    low, high = ppi_mean_ci(truth, seen, rest, alpha=0.05)
    print("ONE_STRATUM", ppi_mean_pointestimate(truth, seen, rest)[0], low[0], high[0])
    table = np.zeros((2, 2))
    for of_judge, of_person in verdicts(2000):
        table[int(of_judge), int(of_person)] += 1
    kappa = cohens_kappa(table)
    print("KAPPA", kappa.kappa, kappa.kappa_low, kappa.kappa_upp)


if __name__ == "__main__":
    main()
