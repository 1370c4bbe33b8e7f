"""Numbers of other programs for the same labels, printed by `benchmarks/judge_oracles.py`.

glide-py 0.11.0 and ppi-python 0.2.3 computed them.
"""

from dataclasses import replace

import numpy as np
import pytest

from agentv.extensions.labels.stats.mean_score import ScoredAnswer, _influences, _Stratum, corrected_mean
from doubles.labelled_scores import scored_answers

STRATIFIED = (0.6217414672770534, 0.6055406453290682, 0.6379422892250386)


def test_the_mean_score_is_that_of_stratified_prediction_powered_inference():
    found = corrected_mean(ScoredAnswer(*row) for row in scored_answers(900))
    assert found.value == pytest.approx(STRATIFIED[0], abs=1e-9)
    assert found.reach > (STRATIFIED[2] - STRATIFIED[1]) / 2, "the shares of the verdicts are not known either"


def test_a_mean_score_needs_points_for_both_verdicts_and_clusters_widen_it():
    rows = [ScoredAnswer(*row) for row in scored_answers(900)]
    only_passed = [replace(one, person=one.person if one.passed else None) for one in rows]
    assert corrected_mean(only_passed) is None
    assert corrected_mean([]) is None
    alone, grouped = (
        corrected_mean(replace(one, cluster=place // size) for place, one in enumerate(sorted(rows, key=str)))
        for size in (1, 30)
    )
    assert alone.reach == pytest.approx(corrected_mean(rows).reach, rel=1e-6)
    assert grouped.reach > 1.5 * alone.reach


def test_an_answer_moves_the_mean_by_what_its_judge_and_its_person_say():
    """What is labelled speaks for its share of all weights, and varies as the labelled answers of its verdict do."""
    members = [
        ScoredAnswer(True, 0.9, 0.8, weight=2.0), ScoredAnswer(True, 0.6, 0.7), ScoredAnswer(True, 0.7),
        ScoredAnswer(False, 0.1, 0.3), ScoredAnswer(False, 0.4, 0.2, weight=3.0),
    ]  # fmt: skip
    strata = {
        True: _Stratum(0.5, 0.0, 0.4, 0.0, 0.45, 3.0, 0.06, 1.0),
        False: _Stratum(0.5, 0.0, 0.8, 0.0, 0.02, 4.0, 0.08, 1.0),
    }
    by_judge = [0.05, -0.02, 0.01, -0.04, 0.03]
    expected = [
        (0.05 + 0.5 * 2 / 3 * (0.8 - 0.4 * 0.9 - 0.45), 0.05**2 + 0.06 / 2),
        (-0.02 + 0.5 / 3 * (0.7 - 0.4 * 0.6 - 0.45), 0.02**2 + 0.06 / 2),
        (0.01, 0.01**2),
        (-0.04 + 0.5 / 4 * (0.3 - 0.8 * 0.1 - 0.02), 0.04**2 + 0.08 / 2),
        (0.03 + 0.5 * 3 / 4 * (0.2 - 0.8 * 0.4 - 0.02), 0.03**2 + 0.08 / 2),
    ]
    assert np.allclose(list(_influences(members, strata, by_judge)), expected, rtol=0, atol=1e-12)
