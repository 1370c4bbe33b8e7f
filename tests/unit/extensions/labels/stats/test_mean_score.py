"""Numbers of other programs for the same labels, printed by `benchmarks/judge_oracles.py`.

glide-py 0.11.0 and ppi-python 0.2.3 computed them.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from agentv.extensions.labels.stats.mean_score import ScoredAnswer, _influences, _Stratum, corrected_mean
from agentv.stats.intervals.proportion import interval_at
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


def test_without_a_judge_that_tells_anything_it_is_the_stratified_mean_of_people():
    rows = [ScoredAnswer(place < 40, 0.5, (place % 5) / 4 if place % 2 else None) for place in range(100)]
    found = corrected_mean(rows)
    means = [
        sum(one.person for one in rows if one.person is not None and one.passed is verdict)
        / sum(one.person is not None and one.passed is verdict for one in rows)
        for verdict in (True, False)
    ]
    assert found.value == pytest.approx(0.4 * means[0] + 0.6 * means[1])


def by_formulas(rows, level=0.95):
    """Value and ends of the interval, where no weight is other than 1 and each answer is a cluster of its own."""
    parts, by_judge, value = [], [], 0.0
    strata = [[one for one in rows if one.passed is verdict] for verdict in (True, False)]
    fitted = []
    for members in filter(None, strata):
        judge = np.array([one.judge for one in members])
        seen = np.array([(one.judge, one.person) for one in members if one.person is not None])
        count, share = len(seen), len(members) / len(rows)
        varies = count > 1 and judge.var() > 0
        slope = min(1.0, max(0.0, np.cov(seen.T, ddof=1)[0, 1] / judge.var(ddof=1))) if varies else 0.0
        residual = seen[:, 1].mean() - slope * seen[:, 0].mean()
        mean = slope * judge.mean() + residual
        errors = seen[:, 1] - slope * seen[:, 0] - residual
        observed = share**2 * (errors**2).sum() / max(1, count - 1) / count
        likely = (seen[:, 1].sum() + 0.5) / (count + 1)
        largest = share**2 * likely * (1 - likely) / count
        variance = (observed * count + largest * 0.5) / (count + 0.5) if observed > 1e-12 else largest
        parts.append((variance, max(1, count - 1)))
        fitted.append((judge, slope, mean))
        value += share * mean
    for judge, slope, mean in fitted:
        by_judge += ((slope * (judge - judge.mean()) + mean - value) / len(rows)).tolist()
    parts.append((sum(one * one for one in by_judge), max(1, len(rows) - 1)))
    variance = sum(one for one, _ in parts)
    freedom = variance**2 / sum(one * one / known for one, known in parts)
    labels = sum(one.person is not None for one in rows)
    inside = (value * labels + 0.5) / (labels + 1)
    quantiles = stats.norm.ppf((1 + level) / 2) / stats.t.ppf((1 + level) / 2, freedom)
    return value, *interval_at(value, inside * (1 - inside) / variance * quantiles**2, level)


FEW = {
    "one of each verdict": [ScoredAnswer(True, 0.9, 0.7), ScoredAnswer(False, 0.2, 0.4)],
    "one answer": [ScoredAnswer(True, 0.9, 0.7)],
    "two of a verdict": [
        ScoredAnswer(True, 0.9, 0.8), ScoredAnswer(True, 0.7, 0.5),
        ScoredAnswer(False, 0.2, 0.1), ScoredAnswer(False, 0.4, 0.35), ScoredAnswer(False, 0.3),
    ],
    "people agree with the judge": [
        ScoredAnswer(place % 2 == 0, place / 20, place / 20 if place < 12 else None) for place in range(20)
    ],
    "the judge says the same of all": [
        ScoredAnswer(place < 9, 0.5, (place % 5) / 4 if place % 3 else None) for place in range(20)
    ],
}  # fmt: skip


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_mean_and_its_interval_are_those_of_the_formulas(level):
    rows = [ScoredAnswer(*row) for row in scored_answers(120)]
    found = corrected_mean(rows, level)
    assert (found.value, found.low, found.high) == pytest.approx(by_formulas(rows, level))


@pytest.mark.parametrize("which", FEW)
def test_the_mean_of_few_answers_is_that_of_the_formulas(which):
    found = corrected_mean(FEW[which])
    assert (found.value, found.low, found.high) == pytest.approx(by_formulas(FEW[which])), which


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
