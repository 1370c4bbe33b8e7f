import numpy as np
import pytest

from agentv.stats.judges.posterior import (
    Counted,
    JudgeCounts,
    JudgedAnswer,
    JudgeDraws,
    Observation,
    counted,
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
