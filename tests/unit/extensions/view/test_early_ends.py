from agentv.extensions.view.pages.entries import early_facts
from agentv.model.run.cases import Sample
from agentv.stats.samples.deciding import Rule, stopped_by
from agentv.stats.samples.stopped import unbiased_rate

PASS, FAIL, ERRED = Sample("passed", 1.0), Sample("failed", 0.0), Sample("errored", None)
EARLY = Rule(20, 0.8, alpha=0.05)


def test_a_case_that_gets_all_its_samples_has_no_such_facts():
    assert early_facts([PASS], Rule(3, 0.8)) is None


def test_a_case_that_gets_more_samples_has_neither_bounds_nor_a_rate():
    assert early_facts([PASS, FAIL], EARLY) == {"alpha": 0.05, "why": None, "bounds": None, "rate": None}


def test_a_case_whose_samples_ended_has_its_bounds_and_its_rate_without_bias():
    samples = [PASS, FAIL, FAIL, FAIL, FAIL, FAIL]
    stopped = stopped_by(samples, EARLY)
    rate = unbiased_rate(stopped, threshold=0.8, alpha=0.05, repeat=20)
    assert early_facts(samples, EARLY) == {
        "alpha": 0.05,
        "why": "below",
        "bounds": [stopped.low, stopped.high],
        "rate": rate,
    }
    assert 0 < rate < 1


def test_a_case_whose_only_sample_errored_has_neither():
    assert early_facts([ERRED], EARLY) == {"alpha": 0.05, "why": "errored", "bounds": None, "rate": None}
    found = early_facts([PASS, ERRED], EARLY)
    assert (found["rate"], found["bounds"][0] >= 0) == (None, True)
