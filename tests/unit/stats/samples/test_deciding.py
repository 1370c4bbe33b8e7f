import random
from itertools import product

import pytest
from msgspec.structs import replace

from agentv.model.run.cases import RequiredGrade, Sample, case_verdict
from agentv.stats.samples.deciding import (
    Rule,
    confidence_sequence,
    evidence_above,
    evidence_for,
    rule_of,
    side,
    stopped_by,
    unbiased_rate,
    verdict_over,
)
from doubles.trials import trial

PASS, FAIL = Sample("passed", 1.0), Sample("failed", 0.0)
ERRED = Sample("errored", None)
EARLY = Rule(20, 0.8, alpha=0.05)


def of(text: str) -> list[Sample]:
    return [{"p": PASS, "f": FAIL, "e": ERRED, "s": Sample("skipped", None)}[one] for one in text]


@pytest.mark.parametrize(
    ("samples", "why", "verdict"),
    [
        ("", None, "skipped"),
        ("pppp", None, "skipped"),
        ("p" * 16, "above", "passed"),
        ("fff", "below", "failed"),
        ("pff", None, "skipped"),
        ("pfffff", "below", "failed"),
        ("ppe", "errored", "errored"),
        ("e", "errored", "errored"),
        ("s", "errored", "skipped"),  # skipped: another case, which it depends on, failed
        ("ps", "errored", "skipped"),
        ("ppppf" * 4, "undecided", "passed"),
        ("pppff" * 4, "undecided", "failed"),
        ("fff" + "p" * 17, "below", "failed"),  # once decided, later samples do not change it
        ("p" * 16 + "e", "above", "errored"),  # an error is no sample
    ],
)
def test_when_samples_end_and_what_the_case_comes_to(samples, why, verdict):
    found = stopped_by(of(samples), EARLY)
    assert (found.why if found else None) == why
    assert verdict_over(of(samples), EARLY) == verdict


def test_a_gate_that_fails_once_decides_the_case():
    missed = Sample("failed", 0.9, (RequiredGrade(1.0, 0.0),))
    kept = Sample("passed", 1.0, (RequiredGrade(1.0, 1.0),))
    assert stopped_by([kept, kept, missed], EARLY).why == "gate"
    assert verdict_over([kept] * 10 + [missed], EARLY) == "failed"


def test_a_gate_with_a_number_must_hold_in_the_mean():
    low = Sample("passed", 1.0, (RequiredGrade(0.6, 0.5),))
    assert stopped_by([low] * 16, EARLY).why == "above"
    assert verdict_over([low] * 16, EARLY) == "failed"


def test_with_a_threshold_of_1_one_failure_is_enough_and_passing_needs_all():
    rule = Rule(5, 1.0, alpha=0.05)
    assert verdict_over(of("pf"), rule) == "failed"
    assert verdict_over(of("pppp"), rule) == "skipped"
    assert verdict_over(of("ppppp"), rule) == "passed"


def test_without_alpha_it_is_the_verdict_over_all_samples():
    for text in ("", "p", "pp", "pf", "pfe", "ppf", "fff"):
        expected = case_verdict(of(text), repeat=3, threshold=0.5)
        assert verdict_over(of(text), Rule(3, 0.5)) == expected
        assert stopped_by(of(text), Rule(3, 0.5)) is None


def test_the_rule_of_a_trial_is_all_that_decides_its_case():
    shown = rule_of(replace(trial(repeat=7, aggregate="pass_any", alpha=0.1), threshold=0.6))
    assert shown == Rule(7, 0.6, "pass_any", 0.1)


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
    """A supermartingale: the next sample does not increase the expected evidence."""
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


RULE = Rule(9, 0.6, "mean", 0.2)
WAYS = {
    "pass": Sample("passed", 1.0),
    "fail": Sample("failed", 0.0),
    "gate": Sample("failed", 0.0, (RequiredGrade(1.0, 0.0),)),
}


def ends(rule: Rule, kinds: tuple[str, ...]):
    """Yield every sequence of samples of a case up to its stop."""
    ways: list[tuple[str, ...]] = [()]
    while ways:
        way = ways.pop()
        stopped = stopped_by([WAYS[one] for one in way], rule)
        if stopped is None:
            ways.extend((*way, kind) for kind in kinds)
        else:
            yield way, stopped


def expected(chances: dict[str, float], rule: Rule) -> tuple[float, float]:
    """Return the exact expectation of the estimate and of the passed share, over all sequences."""
    estimate = share = 0.0
    for way, stopped in ends(rule, tuple(chances)):
        chance = 1.0
        for one in way:
            chance *= chances[one]
        found = unbiased_rate(stopped, threshold=rule.threshold, alpha=rule.alpha, repeat=rule.repeat)
        estimate += chance * found
        share += chance * stopped.passed / stopped.samples
    return estimate, share


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.4, 0.59, 0.75, 0.95, 1.0])
def test_the_estimate_is_unbiased_where_the_share_that_passed_is_not(rate):
    estimate, share = expected({"pass": rate, "fail": 1 - rate}, RULE)
    assert estimate == pytest.approx(rate)
    if rate in (0.4, 0.75):
        assert abs(share - rate) > 0.02


@pytest.mark.parametrize(("passes", "gates"), [(0.7, 0.1), (0.5, 0.3), (0.2, 0.0)])
def test_it_is_unbiased_where_a_failed_gate_ends_the_samples_too(passes, gates):
    estimate, _ = expected({"pass": passes, "fail": 1 - passes - gates, "gate": gates}, RULE)
    assert estimate == pytest.approx(passes)


def test_it_is_the_part_of_the_ways_that_begin_with_a_pass():
    found: dict[tuple[str, int, int], list[bool]] = {}
    for way, stopped in ends(RULE, ("pass", "fail")):
        found.setdefault((stopped.why, stopped.samples, stopped.passed), []).append(way[0] == "pass")
        last = stopped
    for _, stopped in ends(RULE, ("pass", "fail")):
        begun = found[stopped.why, stopped.samples, stopped.passed]
        assert unbiased_rate(stopped, threshold=0.6, alpha=0.2, repeat=9) == pytest.approx(sum(begun) / len(begun))
    assert last.samples <= 9


def test_an_errored_case_has_none_and_without_an_end_the_share_is_the_estimate():
    stopped = stopped_by([WAYS["pass"], Sample("errored", None)], RULE)
    assert unbiased_rate(stopped, threshold=0.6, alpha=0.2, repeat=9) is None
    never = Rule(4, 0.6, "mean", 1e-9)
    for way in product(("pass", "fail"), repeat=4):
        stopped = stopped_by([WAYS[one] for one in way], never)
        assert unbiased_rate(stopped, threshold=0.6, alpha=1e-9, repeat=4) == pytest.approx(way.count("pass") / 4)
