import pytest
from msgspec.structs import replace

from agentv.model.run.cases import RequiredGrade, Sample, case_verdict
from agentv.stats.samples.deciding import Rule, rule_of, stopped_by, verdict_over
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
        ("s", "errored", "skipped"),  # held back: another case, which it depends on, failed
        ("ps", "errored", "skipped"),
        ("ppppf" * 4, "undecided", "passed"),
        ("pppff" * 4, "undecided", "failed"),
        ("fff" + "p" * 17, "below", "failed"),  # what was decided stays so, whatever comes after
        ("p" * 16 + "e", "above", "errored"),  # but an error is no sample
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
