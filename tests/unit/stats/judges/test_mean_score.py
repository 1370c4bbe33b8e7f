"""Numbers of other programs for the same labels, printed by `benchmarks/judge_oracles.py`.

glide-py 0.11.0 and ppi-python 0.2.3 computed them.
"""

from dataclasses import replace

import pytest

from agentv.stats.judges.mean_score import ScoredAnswer, corrected_mean
from doubles.labelled_scores import scored_answers

STRATIFIED = (0.6217414672770534, 0.6055406453290682, 0.6379422892250386)
ONE_STRATUM = (0.7886029082335952, 0.7669498926108105, 0.81025592385638)


def test_the_mean_score_is_that_of_stratified_prediction_powered_inference():
    found = corrected_mean(ScoredAnswer(*row) for row in scored_answers(900))
    assert found.value == pytest.approx(STRATIFIED[0], abs=1e-9)
    assert found.reach > (STRATIFIED[2] - STRATIFIED[1]) / 2, "the shares of the verdicts are not known either"


def test_the_mean_score_of_one_verdict_has_the_interval_of_prediction_powered_inference():
    found = corrected_mean(ScoredAnswer(*row) for row in scored_answers(900) if row[0])
    assert (found.value, found.low, found.high) == pytest.approx(ONE_STRATUM, abs=0.0015)


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


def test_points_that_are_all_alike_leave_an_interval():
    for score in (0.0, 0.5, 1.0):
        rows = [ScoredAnswer(place < 30, score, score if place % 2 else None) for place in range(60)]
        found = corrected_mean(rows)
        assert found.value == pytest.approx(score)
        assert found.high - found.low > 0.05, score
        assert 0 <= found.low <= found.value <= found.high <= 1, score
