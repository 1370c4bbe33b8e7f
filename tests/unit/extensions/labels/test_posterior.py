""""""

from math import fsum

import numpy as np
import pytest
from scipy import stats

from agentv.extensions.labels.posterior import (
    Counted,
    JudgeCounts,
    JudgedAnswer,
    JudgeDraws,
    Observation,
    corrected_rate,
    counted,
    design_effect,
    even_sizes,
    judge_accuracy,
    judge_counts,
    transferred_draws,
    transferred_rate,
)
from agentv.stats.intervals.proportion import wilson_interval
from doubles.labelled_scores import verdicts


def test_clusters_in_which_judge_and_people_err_together_tell_less():
    answers = [JudgedAnswer(place % 20 < 14, place % 20 < 12, place // 5) for place in range(400)]
    alone = judge_counts(JudgedAnswer(one.judge, one.person) for one in answers)
    clustered = judge_counts(answers)
    for name in ("of_passed", "of_failed", "verdicts"):
        assert getattr(clustered, name).total < 0.4 * getattr(alone, name).total, name
    assert clustered.of_passed.passed / clustered.of_passed.total == pytest.approx(12 / 14)


def for_few(variances):
    """Small-sample factor for a variance that is the sum of these, by their effective number."""
    number = max(2.0, fsum(variances) ** 2 / fsum(one * one for one in variances))
    return number / (number - 1) * stats.t.ppf(0.975, number - 1) ** 2


def test_the_design_effect_is_that_of_the_sums_of_clusters_and_of_how_few_there_are():
    clusters = ["a", "a", "b", "b", None, "c", "c", "c"]
    moved, variances = [0.2, 0.1, -0.3, -0.1, 0.2, -0.1, 0.1, 0.05], [0.05, 0.04, 0.06, 0.02, 0.03, 0.01, 0.02, 0.05]
    influences = list(zip(moved, variances, strict=True))
    squares = fsum(one * one for one in moved)
    effect = fsum(one * one for one in (0.3, -0.4, 0.2, 0.05)) / squares
    few = for_few([0.09, 0.08, 0.03, 0.08]) / for_few(variances)
    assert design_effect(clusters, influences) == pytest.approx(effect * few)
    assert effect * few > 2
    # the answer of cluster b moves the rate of this run, but its expected variance is 0
    known = [(0.2, 0.1), (0.1, 0.1), (0.05, 0.0)]
    few = for_few([0.2, 0.0]) / for_few([0.1, 0.1, 0.0])
    assert design_effect(["a", "a", "b"], known) == pytest.approx((0.3**2 + 0.05**2) / 0.0525 * few)


def test_the_counts_of_clustered_answers_are_those_that_the_error_of_the_corrected_rate_leaves():
    """The rate is Σ share · rate by the judge's verdict; an answer influences it through its verdict and its label."""
    rows = [
        (True, True, 1.0, 1.0), (True, None, 2.0, 1.0), (True, False, 1.0, 2.0), (True, True, 1.0, 2.0),
        (False, None, 1.0, 1.0), (False, False, 3.0, 1.0), (False, True, 1.0, 1.0), (False, False, 1.0, 1.0),
    ]  # fmt: skip
    answers = [JudgedAnswer(*row[:2], cluster, *row[2:]) for row, cluster in zip(rows, "aabbccdd", strict=True)]
    total = 11.0
    shares = {True: 5 / total, False: 6 / total}
    # weights of labels: 1, 2 and 2 for passed answers, of which 1 and 2 pass; 3, 1 and 1 for failed ones, of which 1
    # passes
    labelled, rates = {True: 5.0, False: 5.0}, {True: 3 / 5, False: 1 / 5}
    truth = sum(shares[verdict] * rates[verdict] for verdict in (True, False))
    influences = []
    for judge, person, weight, per_label in rows:
        influence = weight * (rates[judge] - truth) / total
        square = influence**2
        if person is not None:
            moved = weight * per_label * shares[judge] / labelled[judge]
            influence += moved * (person - rates[judge])
            square += moved**2 * rates[judge] * (1 - rates[judge])
        influences.append((influence, square))
    effect = design_effect(list("aabbccdd"), influences)
    found = judge_counts(answers)
    for verdict, counts in ((True, found.of_passed), (False, found.of_failed)):
        own = [
            Observation(one.person, one.cluster, one.label_weight)
            for one in answers
            if one.judge is verdict and one.person is not None
        ]
        alone = counted(Observation(one.passed, None, one.weight) for one in own)
        assert counts.total == pytest.approx(min(counted(own).total, alone.total / effect))
        assert counts.passed / counts.total == pytest.approx(rates[verdict])
    assert effect > 1.4


def test_a_sample_is_drawn_evenly_as_far_as_each_stratum_has_answers():
    assert even_sizes(10, [80, 20]) == [5, 5]
    assert even_sizes(11, [80, 20]) == [6, 5]
    assert even_sizes(10, [80, 2]) == [8, 2]
    assert even_sizes(10, [3, 90]) == [3, 7]
    assert even_sizes(100, [30, 20]) == [30, 20]
    assert even_sizes(5, [0, 3]) == [0, 3]
    assert even_sizes(4, [1, 9, 9]) == [1, 2, 1]
    assert even_sizes(16, [5, 1, 1, 100]) == [5, 1, 1, 9]
    assert even_sizes(0, [1, 2]) == [0, 0]
    assert even_sizes(3, []) == []


ROUNDS = 80


def counts(of_passed, of_failed, verdicts):
    return JudgeCounts(Counted(*of_passed), Counted(*of_failed), Counted(*verdicts))


@pytest.mark.parametrize(("truth", "tpr", "tnr"), [(0.8, 0.7, 0.9), (0.97, 0.8, 0.8)])
def test_the_corrected_rate_covers_the_truth_and_the_judges_own_does_not(truth, tpr, tnr):
    chance = np.random.default_rng(1)
    held = transferred = naive = 0
    for _ in range(ROUNDS):
        (passed, failed, judge), (_, _, other) = (drawn(chance, one, tpr, tnr) for one in (truth, 0.6))
        found = corrected_rate(JudgeCounts(passed, failed, judge))
        held += found.low <= truth <= found.high
        low, high = wilson_interval(int(judge.passed), int(judge.total))
        naive += low <= truth <= high
        passed, failed, other = drawn(chance, 0.6, tpr, tnr)
        moved = transferred_rate(JudgeCounts(passed, failed, other), judge)
        transferred += moved is None or moved.low <= truth <= moved.high
    assert held / ROUNDS >= 0.88
    assert transferred / ROUNDS >= 0.88
    assert naive / ROUNDS < 0.75


def drawn(chance, truth, tpr, tnr):
    """Draw a run of 500 answers, of which 40 are labelled, half from each verdict."""
    people = chance.random(500) < truth
    judge = chance.random(500) < np.where(people, tpr, 1 - tnr)
    labelled = [chance.choice(people[judge == verdict], 20) for verdict in (True, False)]
    strata = [Counted(int(one.sum()), int(20 - one.sum())) for one in labelled]
    return *strata, Counted(int(judge.sum()), int(500 - judge.sum()))


def test_with_very_many_labels_the_rates_are_those_of_the_formulas():
    many = counts((900_000, 100_000), (200_000, 800_000), (700_000, 300_000))
    found = corrected_rate(many)
    assert (found.value, found.reach) == (pytest.approx(0.7 * 0.9 + 0.3 * 0.2, abs=1e-4), pytest.approx(0, abs=0.002))
    tpr, tnr = 0.63 / 0.69, 0.24 / 0.31
    for passed in (300_000, 600_000, 900_000):
        moved = transferred_rate(many, Counted(passed, 1_000_000 - passed))
        rogan_gladen = (passed / 1_000_000 + tnr - 1) / (tpr + tnr - 1)
        assert moved.value == pytest.approx(min(1.0, rogan_gladen), abs=0.001), passed
        assert 0 <= moved.low <= moved.value <= moved.high <= 1


def test_a_judge_that_is_hardly_ever_no_better_than_chance_corrects_another_run():
    """Up to 2.5% of the draws may have a judge no better than chance; they carry no information and are left out."""
    draws = {}
    for labels in range(8, 40, 5):
        calibration = counts((labels * 0.7, labels * 0.3), (labels * 0.4, labels * 0.6), (500, 500))
        judge = JudgeDraws.of(calibration)
        share = float(np.mean(judge.true_positives + judge.true_negatives <= 1))
        found = transferred_draws(calibration, Counted(300, 200))
        assert (found is None) == (share > 0.025), labels
        if found is not None:
            assert len(found) == 40_000 - round(share * 40_000)
        draws[labels] = found is None
    assert set(draws.values()) == {True, False}


def test_labels_that_are_all_alike_leave_an_interval():
    found = corrected_rate(counts((20, 0), (0, 0), (100, 0)))
    assert 0.8 < found.low < found.value < found.high < 1
    found = corrected_rate(counts((0, 0), (0, 0), (10, 10)))
    assert found.low < 0.1
    assert found.high > 0.9, "without a label nothing is known"


def units(*observers):
    return [[label == "1" for label in row] for row in zip(*observers, strict=True)]


def test_what_the_labels_cannot_show_is_not_made_up():
    alike = judge_accuracy(JudgeCounts(Counted(10, 0), Counted(0, 0), Counted(100, 0)))
    assert (alike.tnr, alike.kappa) == (None, None)
    assert (0.75 < alike.accuracy.low < 1, alike.accuracy.value) == (True, 1.0)
    none_pass = judge_accuracy(JudgeCounts(Counted(0, 4), Counted(0, 6), Counted(50, 50)))
    assert (none_pass.tpr, none_pass.kappa) == (None, None)
    one_verdict = judge_accuracy(JudgeCounts(Counted(), Counted(3, 6), Counted(50, 50)))
    assert one_verdict.kappa is None, "no label shows what people say of what the judge passes"
    few_of_passed = judge_accuracy(JudgeCounts(Counted(2, 8), Counted(8, 2), Counted(50, 50)))
    assert None not in (few_of_passed.tpr, few_of_passed.tnr, few_of_passed.kappa)
    part_of_one = judge_accuracy(JudgeCounts(Counted(0.2, 0.3), Counted(0.3, 0.2), Counted(50, 50)))
    assert None not in (part_of_one.tpr, part_of_one.tnr, part_of_one.kappa)


KAPPA = (0.517764153082291, 0.4766676464236596, 0.5588606597409224)
"""From statsmodels 0.15.0, printed by `benchmarks/judge_oracles.py`."""


def test_kappa_is_that_of_statsmodels():
    judged = [JudgedAnswer(judge, person) for judge, person in verdicts(2000)]
    found = judge_accuracy(judge_counts(judged)).kappa
    assert (found.value, found.low, found.high) == pytest.approx(KAPPA, abs=0.006)
