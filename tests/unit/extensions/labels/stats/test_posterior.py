""""""

from __future__ import annotations

import itertools
from math import fsum

import numpy as np
import pytest
from scipy import stats

from agentv.extensions.labels.stats.posterior import (
    Counted,
    JudgeCounts,
    JudgedAnswer,
    JudgeDraws,
    Observation,
    _grown,
    _influences,
    _with_more,
    corrected_rate,
    counted,
    design_effect,
    estimated,
    even_sizes,
    judge_counts,
    more_labels,
    transferred_draws,
    transferred_rate,
    with_label_weights,
)
from agentv.extensions.labels.stats.run_rate import JudgedPart, RunParts, run_rate_draws
from agentv.stats.intervals.proportion import wilson_interval

MANY = JudgeCounts(Counted(900_000, 100_000), Counted(200_000, 800_000), Counted(700_000, 300_000))


def test_with_many_labels_every_share_is_what_the_counts_say():
    draws = JudgeDraws.of(MANY)
    shares = {"truth": 0.69, "true_positives": 0.63 / 0.69, "true_negatives": 0.24 / 0.31, "accuracy": 0.87}
    for name, share in shares.items():
        assert estimated(getattr(draws, name)).value == pytest.approx(share, abs=0.002), name
    by_chance = 0.7 * 0.69 + 0.3 * 0.31
    assert estimated(draws.kappa).value == pytest.approx((0.87 - by_chance) / (1 - by_chance), abs=0.003)


def test_the_same_seed_gives_the_same_draws_and_another_does_not():
    first, again, other = (JudgeDraws.of(MANY, seed).truth for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_observations_count_by_clusters_and_weights():
    alone = counted(Observation(passed) for passed in (True, True, False, True))
    assert (alone.passed, alone.failed) == pytest.approx((3, 1))
    alike = counted(Observation(place < 5, cluster=place // 5) for place in range(10))
    assert alike.total == pytest.approx(2), "ten answers of two cases that each end alike are about two"
    weighted = counted([Observation(True, weight=9.0), Observation(False, weight=1.0)])
    assert weighted.passed / weighted.total == pytest.approx(0.9)
    assert weighted.total == pytest.approx(100 / 82), "Kish: (9 + 1)² / (81 + 1)"
    assert counted([]) == Counted()
    assert counted([Observation(True, "a")] * 4).total == 1, "one cluster tells as much as one observation"


def test_a_run_counts_labels_apart_from_verdicts():
    answers = [JudgedAnswer(place < 60, place % 2 == 0 if place % 3 == 0 else None) for place in range(90)]
    found = judge_counts(answers)
    given = [
        number for one in (found.of_passed, found.of_failed, found.verdicts) for number in (one.passed, one.failed)
    ]
    assert given == pytest.approx([10, 10, 5, 5, 60, 30])


def test_clusters_in_which_judge_and_people_err_together_tell_less():
    answers = [JudgedAnswer(place % 20 < 14, place % 20 < 12, place // 5) for place in range(400)]
    alone = judge_counts(JudgedAnswer(one.judge, one.person) for one in answers)
    clustered = judge_counts(answers)
    for name in ("of_passed", "of_failed", "verdicts"):
        assert getattr(clustered, name).total < 0.4 * getattr(alone, name).total, name
    assert clustered.of_passed.passed / clustered.of_passed.total == pytest.approx(12 / 14)


def test_few_clusters_tell_less_than_many_and_single_answers_are_none():
    """Ten clusters of which each half passes know the variance with nine degrees of freedom; fifty with forty-nine."""
    chance = np.random.default_rng(2)
    rates = np.repeat(chance.permutation(np.linspace(0.3, 0.9, 50)), 10)
    people = chance.random(500) < rates
    judge = chance.random(500) < np.where(people, 0.9, 0.3)
    effects = {}
    for size in (1, 10, 50):
        answers = [JudgedAnswer(bool(judge[one]), bool(people[one]), one // size) for one in range(500)]
        alone = judge_counts(JudgedAnswer(one.judge, one.person) for one in answers)
        effects[size] = alone.of_passed.total / judge_counts(answers).of_passed.total
    assert effects[1] == pytest.approx(1, abs=1e-9), "no interval is wider where there are no clusters"
    assert 1.2 < effects[10] < 0.8 * effects[50]


def for_few(variances):
    """By how much a variance grows that is a sum of these, of which some number of equal ones would tell as much."""
    number = max(2.0, fsum(variances) ** 2 / fsum(one * one for one in variances))
    return number / (number - 1) * stats.t.ppf(0.975, number - 1) ** 2


def test_the_design_effect_is_that_of_the_sums_of_clusters_and_of_how_few_there_are():
    clusters = ["a", "a", "b", "b", None, "c", "c", "c"]
    influences = [
        (0.2, 0.05),
        (0.1, 0.04),
        (-0.3, 0.06),
        (-0.1, 0.02),
        (0.2, 0.03),
        (-0.1, 0.01),
        (0.1, 0.02),
        (0.05, 0.05),
    ]
    squares = fsum(one * one for one, _ in influences)
    effect = fsum(one * one for one in (0.3, -0.4, 0.2, 0.05)) / squares
    few = for_few([0.09, 0.08, 0.03, 0.08]) / for_few([variance for _, variance in influences])
    assert design_effect(clusters, influences) == pytest.approx(effect * few)
    assert effect * few > 2
    # a cluster whose answers are known to move nothing, but for this run's
    known = [(0.2, 0.1), (0.1, 0.1), (0.05, 0.0)]
    few = for_few([0.2, 0.0]) / for_few([0.1, 0.1, 0.0])
    assert design_effect(["a", "a", "b"], known) == pytest.approx((0.3**2 + 0.05**2) / 0.0525 * few)


def test_without_clusters_or_without_influence_there_is_no_design_effect():
    influences = [(0.2, 0.05), (0.1, 0.04), (-0.3, 0.06)]
    assert design_effect([None] * 3, influences) == 1.0
    assert design_effect(["a", "b", None], influences) == 1.0
    assert design_effect(["a", "a", "b"], [(0.0, 0.1)] * 3) == 1.0
    assert design_effect(["a", "a", "b"], [(0.1, 0.0)] * 3) == 1.0
    assert design_effect(["a", "a", *"bcdefghij"], [(0.2, 0.01), (-0.2, 0.01), *[(0.2, 0.01)] * 9]) == 1.0


def test_a_run_without_clusters_counts_labels_by_their_weights():
    answers = [JudgedAnswer(True, True, weight=2.0, per_label=3.0), JudgedAnswer(True, False), JudgedAnswer(False)]
    found = judge_counts(answers)
    # Kish of the weights 6 and 1: 49 / 37; of the verdicts 2, 1 and 1: 16 / 6
    assert (found.of_passed.passed, found.of_passed.failed) == pytest.approx((49 / 37 * 6 / 7, 49 / 37 / 7))
    assert found.of_failed == Counted()
    assert (found.verdicts.passed, found.verdicts.failed) == pytest.approx((16 / 6 * 0.75, 16 / 6 * 0.25))


def test_an_interval_holds_the_middle_of_the_draws_at_its_level():
    draws = np.arange(1001) / 1000
    found = estimated(draws, 0.8)
    assert (found.value, found.low, found.high, found.reach) == pytest.approx((0.5, 0.1, 0.9, 0.4))
    assert estimated(draws) == estimated(draws, 0.95)
    assert Counted(3.0, 1.0).scaled(0.5) == Counted(1.5, 0.5)


def test_the_counts_of_clustered_answers_are_those_that_the_error_of_the_corrected_rate_leaves():
    """The rate is Σ share · rate by the judge's verdict; an answer moves it by its verdict, and by its label."""
    rows = [
        (True, True, 1.0, 1.0), (True, None, 2.0, 1.0), (True, False, 1.0, 2.0), (True, True, 1.0, 2.0),
        (False, None, 1.0, 1.0), (False, False, 3.0, 1.0), (False, True, 1.0, 1.0), (False, False, 1.0, 1.0),
    ]  # fmt: skip
    answers = [JudgedAnswer(*row[:2], cluster, *row[2:]) for row, cluster in zip(rows, "aabbccdd", strict=True)]
    total = 11.0
    shares = {True: 5 / total, False: 6 / total}
    # weights of labels: 1, 2 and 2 of passed answers, of which 1 and 2 pass; 3, 1 and 1 of failed ones, of which 1 passes
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
    assert np.allclose(list(_influences(answers)), influences, rtol=0, atol=1e-12)
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


def test_a_larger_sample_takes_at_least_as_many_from_each_stratum():
    available = [7, 0, 1, 12, 3]
    sizes = [even_sizes(wanted, available) for wanted in range(26)]
    assert [sum(size) for size in sizes] == [*range(24), 23, 23]
    for smaller, larger in itertools.pairwise(sizes):
        assert all(less <= more for less, more in zip(smaller, larger, strict=True)), (smaller, larger)


def drawn_of_kind(kind, answers, labels, passed):
    """Answers that a judge passes, some of them labelled, of which people pass some; and their kind."""
    people = [place < passed for place in range(labels)] + [None] * (answers - labels)
    return [(JudgedAnswer(True, person), kind) for person in people]


def weighted(*groups):
    placed = [one for group in groups for one in group]
    return with_label_weights([one for one, _ in placed], [kind for _, kind in placed])


def test_labels_of_a_small_assertion_do_not_speak_for_a_large_one():
    """People pass all of 100 easy answers and two thirds of 900 hard ones; both have 30 labels."""
    found = weighted(drawn_of_kind("easy", 100, 30, 30), drawn_of_kind("hard", 900, 30, 20))
    truth = (100 + 900 * 2 / 3) / 1000
    assert {one.per_label for one in found if one.person is not None} == {100 / 30, 900 / 30}
    rate = corrected_rate(judge_counts(found))
    assert rate.value == pytest.approx(truth, abs=0.02)
    assert rate.low < truth < rate.high < 0.85, "the rate without weights is (30 + 20) / 60 = 0.83"
    of_run = estimated(run_rate_draws(RunParts([JudgedPart(found)], always_judged=True)))
    assert (of_run.value, of_run.low) == pytest.approx((rate.value, rate.low), abs=1e-9)


def test_labels_of_one_assertion_count_as_without_weights():
    alone = [one for one, _ in drawn_of_kind("easy", 100, 30, 20)]
    found, expected = (judge_counts(one).of_passed for one in (weighted(drawn_of_kind("easy", 100, 30, 20)), alone))
    assert (found.passed, found.failed) == pytest.approx((expected.passed, expected.failed))


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
    """A run of 500 answers, of which 40 are labelled, evenly from both verdicts."""
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


def test_a_level_and_a_seed_are_those_that_are_given():
    some = counts((27, 3), (6, 24), (810, 190))
    usual, sure = corrected_rate(some), corrected_rate(some, level=0.99)
    assert sure.low < usual.low < usual.high < sure.high
    assert sure.value == usual.value
    assert corrected_rate(some, seed=1) != usual
    moved, other = (transferred_rate(some, Counted(500, 500), seed) for seed in (0, 1))
    assert moved != other
    assert transferred_rate(some, Counted(500, 500), level=0.5).reach < moved.reach


def test_a_judge_that_is_hardly_ever_no_better_than_chance_corrects_another_run():
    """Of the draws 2.5% may be of a judge that is no better: these tell nothing of the rate, and are left out."""
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


def test_a_judge_that_is_no_better_than_chance_corrects_no_other_run():
    assert transferred_rate(counts((10, 10), (10, 10), (50, 50)), Counted(80, 20)) is None


def test_the_pass_rate_of_a_run_without_verdicts_is_not_known_and_none_is_above_one():
    exact = counts((9_999_999, 1), (1, 9_999_999), (5_000_000, 5_000_000))
    assert np.mean(transferred_draws(exact, Counted(0, 0))) == pytest.approx(0.5, abs=0.01)
    many = counts((900_000, 100_000), (200_000, 800_000), (700_000, 300_000))
    passed = transferred_rate(many, Counted(1_000_000, 0))
    assert (passed.low, passed.value, passed.high) == (1, 1, 1)


def test_what_is_narrow_enough_is_as_narrow_as_it_is_said_to_be():
    known = counts((900, 100), (100, 900), (8100, 1900))
    assert more_labels(known, (7100, 900)).reach == corrected_rate(known).reach


def test_labels_to_come_are_drawn_evenly_from_both_verdicts():
    grown = _with_more(counts((0, 0), (0, 0), (60, 40)), (50, 30), 20)
    assert grown == counts((10, 0), (0, 10), (60, 40))


def test_labels_to_come_are_taken_to_be_as_those_so_far_and_where_there_are_none_as_the_judge():
    assert _grown(Counted(), 10, first=1.0) == Counted(10.0, 0.0)
    assert _grown(Counted(), 10, first=0.0) == Counted(0.0, 10.0)
    found = _grown(Counted(3, 1), 9, first=1.0)
    assert (found.passed, found.failed) == pytest.approx((3 + 9 * 3.5 / 4.5, 1 + 9 / 4.5))
    found = _grown(Counted(3, 1), 9, first=0.0)
    assert (found.passed, found.failed) == pytest.approx((3 + 9 * 3 / 4.5, 1 + 9 * 1.5 / 4.5))


def test_more_labels_narrow_the_interval_to_the_goal():
    known = counts((27, 3), (6, 24), (8100, 1900))
    found = more_labels(known, (8070, 1870))
    assert found.enough
    assert 20 < found.labels < 600
    more = counts((27 + 0.9 * found.labels / 2, 3 + 0.1 * found.labels / 2),
                  (6 + 0.2 * found.labels / 2, 24 + 0.8 * found.labels / 2), (8100, 1900))  # fmt: skip
    assert corrected_rate(more).reach == pytest.approx(0.05, abs=0.004)
    assert more_labels(counts((900, 100), (100, 900), (8100, 1900)), (7100, 900)).labels == 0
    short = more_labels(counts((5, 5), (5, 5), (20, 20)), (10, 10))
    assert (short.enough, short.labels) == (False, 20)
    assert short.reach > 0.05
