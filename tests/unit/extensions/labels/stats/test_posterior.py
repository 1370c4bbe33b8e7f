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
    _influences,
    counted,
    design_effect,
    estimated,
    judge_counts,
)

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
