import numpy as np
import pytest

from agentv.extensions.labels.stats.corrected import (
    _grown,
    _with_more,
    corrected_rate,
    more_labels,
    transferred_draws,
    transferred_rate,
)
from agentv.extensions.labels.stats.posterior import Counted, JudgeCounts, JudgeDraws
from agentv.stats.intervals.proportion import wilson_interval

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
