import random

import pytest

from agentv.stats.samples.deciding import confidence_sequence, evidence_above, evidence_for, side


@pytest.mark.parametrize(
    ("passed", "failed", "threshold", "mixture"),
    [
        # R: integrate(function(q) (q/t)^s * ((1-q)/(1-t))^f, t, 1, rel.tol=1e-12)$value / (1-t)
        (10, 0, 0.8, 3.869648066434),
        (3, 4, 0.5, 0.332142857143),
        (0, 3, 0.8, 0.25),
        (20, 2, 0.8, 1.768872901347),
        (50, 3, 0.9, 1.229443715184),
    ],
)
def test_the_evidence_is_the_integral_that_it_is_said_to_be(passed, failed, threshold, mixture):
    always = 0.0 if failed else threshold**-passed
    assert evidence_above(passed, failed, threshold) == pytest.approx((mixture + always) / 2, abs=1e-9)


@pytest.mark.parametrize(
    ("threshold", "passes", "failures"), [(0.5, 5, 5), (0.8, 16, 3), (0.9, 33, 2), (0.95, 68, 2), (1.0, None, 1)]
)
def test_how_many_samples_that_are_all_alike_decide(threshold, passes, failures):
    above = next((n for n in range(1, 200) if side(n, 0, threshold, 0.05)), None)
    assert (above, next(n for n in range(1, 200) if side(0, n, threshold, 0.05))) == (passes, failures)
    assert side(0, failures, threshold, 0.05) == "below"
    assert passes is None or side(passes, 0, threshold, 0.05) == "above"


def test_it_is_the_expectation_of_no_gain_at_the_threshold():
    """A supermartingale: what the next sample makes of the evidence is, in the mean, no more than it is now."""
    for threshold in (0.3, 0.5, 0.8, 0.95):
        for passed in range(12):
            for failed in range(6):
                now = evidence_above(passed, failed, threshold)
                for rate in (threshold, threshold * 0.7, 0.0):
                    more, less = (
                        evidence_above(passed + 1, failed, threshold),
                        evidence_above(passed, failed + 1, threshold),
                    )
                    assert rate * more + (1 - rate) * less <= now + 1e-9


@pytest.mark.parametrize(("rate", "threshold"), [(0.8, 0.8), (0.79, 0.8), (0.5, 0.5), (0.9, 0.95), (0.95, 0.95)])
def test_looking_after_every_sample_is_wrong_no_more_often_than_alpha(rate, threshold):
    dice, alpha, runs = random.Random(11), 0.1, 400
    wrong = sum(
        decided(rate, threshold, alpha, dice) == ("above" if rate < threshold else "below") for _ in range(runs)
    )
    assert wrong / runs <= alpha + 0.03  # three standard deviations of 400 draws would be 0.045


def decided(rate: float, threshold: float, alpha: float, dice: random.Random) -> str | None:
    passed = 0
    for number in range(1, 101):
        passed += dice.random() < rate
        found = side(passed, number - passed, threshold, alpha)
        if found:
            return found
    return None


def test_the_bounds_are_where_the_evidence_is_enough():
    low, high = confidence_sequence(17, 3, 0.05)
    assert 0 < low < 0.85 < high < 1
    assert evidence_above(17, 3, low) == pytest.approx(20, rel=1e-6)
    assert evidence_above(3, 17, 1 - high) == pytest.approx(20, rel=1e-6)
    assert confidence_sequence(3, 17, 0.05) == pytest.approx((1 - high, 1 - low))


def test_the_evidence_for_a_side_is_that_of_the_rate_or_of_its_complement():
    assert evidence_for("above", 9, 2, 0.6) == evidence_above(9, 2, 0.6)
    assert evidence_for("below", 9, 2, 0.6) == evidence_above(2, 9, 1 - 0.6)
    for passed, failed in ((33, 2), (2, 9), (5, 5)):
        found = side(passed, failed, 0.8, 0.05)
        for one in ("above", "below"):
            assert (evidence_for(one, passed, failed, 0.8) >= 20) is (found == one)


def test_very_many_samples_overflow_nothing():
    assert side(5000, 10, 0.8, 0.05) == "above"
    assert side(10, 5000, 0.8, 0.05) == "below"
    assert side(100_000, 0, 0.5, 0.05) == "above"
    low, high = confidence_sequence(4000, 1000, 0.05)
    assert 0.77 < low < 0.8 < high < 0.83
