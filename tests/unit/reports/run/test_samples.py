from __future__ import annotations

from msgspec.structs import replace

from agentv.reports.run.samples import sampled_label, sampled_words, samples_lines
from agentv.store.totals.samples import SamplesTally
from agentv.store.totals.tally import CaseSamples


def samples(*cases):
    tally = SamplesTally()
    for number, (judged, passed) in enumerate(cases):
        tally.add(CaseSamples("refund", "s", "gpt", None, judged, passed), number)
    return tally.samples()


def test_a_chance_is_told_no_finer_than_samples_tell_it():
    (case,) = samples((20, 10)).by_case
    sure = {"pass_at_k_interval": {9: (0.9, 1.0)}, "pass_hat_k_interval": {9: (0.0, 0.1)}}
    assert sampled_words(replace(case, pass_at_k={9: 0.999999}, pass_hat_k={9: 0.000001}, **sure)).endswith(
        "pass@9 >99.9% (95% CI 90.0% to 100.0%), pass^9 <0.1% (95% CI 0.0% to 10.0%), flaky"
    )


def test_a_case_is_called_by_what_tells_it_from_others():
    (case,) = samples((2, 2)).by_case
    assert sampled_label(case, targets=False) == "refund"
    assert sampled_label(replace(case, prompt_id="short\x1b"), targets=True) == r"refund with short\x1b on gpt"


def test_the_totals_of_samples():
    assert list(samples_lines(samples((5, 5), (5, 3), (5, 0)))) == [
        "always passed: 1 case with 5 samples (95% CI of the rate of each 56.6% to 100.0%)",
        "flaky: 1 of 3 cases (33.3%, 95% CI 6.1% to 79.2%)",
        "pass@5 66.7% (95% CI 20.8% to 93.9%), pass^5 33.3% (95% CI 6.1% to 79.2%)",
    ]
    assert list(samples_lines(samples((1, 1)))) == []


def test_pass_at_k_is_over_the_complete_cases_and_names_the_rest():
    *_, line = samples_lines(samples((5, 5), (5, 3), (5, 0), (4, 2)))
    assert line == (
        "pass@5 66.7% (95% CI 20.8% to 93.9%), pass^5 33.3% (95% CI 6.1% to 79.2%); without 1 case with fewer graded "
        "samples: refund"
    )
