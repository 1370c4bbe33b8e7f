import pytest
from msgspec import structs
from msgspec.structs import replace

from agentv.model.run.matrix import Counts
from agentv.model.run.summary import CaseRule, Summary
from agentv.model.run.trial import EarlyCase, EarlyStops, SamplingStop
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.reports.run.plain import render_plain
from agentv.reports.run.rates import case_rule_words, certainty
from agentv.reports.run.samples import early_words, sampled_label, sampled_words, samples_lines
from agentv.reports.run.terminal import render_terminal
from agentv.reports.run.totals import totals
from agentv.reports.run.trial_view import check, reason, trial_view
from agentv.reports.run.view import RunView
from agentv.stats.samples.case_samples import CaseSamples, SamplesTally
from doubles.matrix import MATRIX
from doubles.trials import errored_score, finished
from doubles.views import LOOKS
from doubles.views import SUMMARY as OF_A_RUN

SUMMARY = Summary(
    run_id="r",
    cases=Counts(100, 95, 3, 2, 0),
    trials=Counts(100, 95, 3, 2, 0),
    pass_rate=95 / 98,
    pass_rate_interval=(0.9138, 0.9895),
    mean_score=0.9444,
    pass_rate_bounds=(0.95, 0.97),
    judged=98,
    interval_clusters=98,
    clustered_by=("case",),
    mean_score_interval=(0.9011, 0.9733),
    cost_usd=None,
    judge_cost_usd=None,
    token_usage=None,
    duration_ms=3210.0,
)


def lines(noted=0, **changed):
    return totals(replace(SUMMARY, **changed), noted, "out/run")


def test_totals_say_everything():
    assert lines() == [
        "100 cases: 95 passed, 3 failed, 2 errored",
        (
            "pass rate 96.9% of 98 judged (95% CI 91.4% to 99.0%; 95.0% if all 2 errored had failed),"
            " mean score 0.94 (95% CI 0.90 to 0.97)"
        ),
        "took 3.2 s",
        "results: out/run",
    ]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"clustered_by": ("conversation_id",), "interval_clusters": 10}, "95% CI 91.4% to 99.0%, 10 conversations"),
        (
            {"clustered_by": ("customer\n",), "interval_clusters": 9},
            "95% CI 91.4% to 99.0%, 9 clusters by 'customer\\n'",
        ),
        ({"clustered_by": ("case", "customer"), "interval_clusters": 9}, "95% CI 91.4% to 99.0%, 9 clusters"),
        (
            {"clustered_by": ("conversation_id",), "interval_clusters": 1, "pass_rate_interval": None},
            "no confidence interval: 1 conversation only",
        ),
    ],
)
def test_an_interval_says_what_it_counts(changed, said):
    assert certainty(replace(SUMMARY, **changed, trials=Counts(98, 95, 3, 0, 0))) == said


def test_the_rate_of_samples_and_the_cases_that_meet_the_rule_are_named_apart():
    given = {"rule_pass_rate": 0.375, "rule_pass_rate_interval": (0.242, 0.53), "rule_pass_rate_bounds": (0.3, 0.4)}
    given |= {"cases": Counts(42, 15, 25, 2, 0), "trials": Counts(210, 155, 53, 2, 0), "judged": 208}
    rate, met = lines(**given, rule=CaseRule(5, "mean", 0.8), interval_clusters=42)[2:4]
    assert rate.startswith("pass rate 96.9% over 208 judged samples (95% CI 91.4% to 99.0%, 42 cases; 95.0% if")
    assert met == (
        "cases that meet the rule (mean ≥ 0.8 of 5 samples): 37.5% of 40 judged"
        " (95% CI 24.2% to 53.0%; 30.0% if all 2 errored had failed)"
    )
    assert "cases that meet their rules: 37.5%" in lines(**given)[3]


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [("pass_any", "any of 3 samples ≥ 1"), ("pass_all", "all of 3 samples ≥ 1"), ("majority", "most of 3 samples ≥ 1")],
)
def test_rules_in_words(aggregate, said):
    assert case_rule_words(CaseRule(3, aggregate, 1.0)) == said


@pytest.mark.parametrize(
    ("stops", "said"),
    [
        (
            EarlyStops(0.05, 2, 0, 19, 41, cases=2, confirmed=2),
            (
                "decided 2 of 2 cases with 19 of 60 samples; of all 2 cases, at most 5.0% are expected to be decided "
                "wrongly, and at most 5.0% of the decided ones (false discovery rate)"
            ),
        ),
        (
            EarlyStops(0.05, 2, 1, 79, 41, cases=500, confirmed=1),
            (
                "decided 2 of 3 cases with 79 of 120 samples; of all 500 cases, at most 5.0% are expected to be decided "
                "wrongly; 1 of the 2 decisions holds at a false discovery rate of 5.0% (a smaller --alpha confirms more); "
                "1 is undecided: it uses the share that passed, which is not proof"
            ),
        ),
        (
            EarlyStops(0.05, 1, 2, 79, 41, cases=3, by_gate=1),
            (
                "decided 1 of 3 cases with 79 of 120 samples; "
                "2 are undecided: they use the share that passed, which is not proof"
            ),
        ),
        (
            EarlyStops(0.05, 1, 0, 16, 4, cases=1, confirmed=1),
            "decided 1 of 1 case with 16 of 20 samples; wrong with a probability of at most 5.0%",
        ),
        (
            EarlyStops(0.05, 0, 3, 60, 0),
            (
                "decided 0 of 3 cases with 60 of 60 samples; "
                "3 are undecided: they use the share that passed, which is not proof"
            ),
        ),
    ],
)
def test_how_sure_decisions_are_is_said_of_all_cases_and_of_those_that_hold_together(stops, said):
    assert said in lines(early_stops=stops, cases=Counts(3, 2, 1, 0, 0))


def test_samples_of_errored_cases_are_no_savings_and_said_to_be_there():
    line = lines(early_stops=EarlyStops(0.05, 2, 0, 19, 41))[2]
    assert line.startswith("decided 2 of 2 cases with 19 of 60 samples (including those of errored cases); of all")


def test_where_nothing_was_judged_no_rate_is_said():
    nothing = Counts(1, 0, 0, 1, 0)
    found = lines(cases=nothing, trials=nothing, pass_rate=None, pass_rate_interval=None, mean_score=None)
    assert "nothing was graded" in found


@pytest.mark.parametrize(
    ("unpriced", "judge_unpriced", "said"),
    [
        (2, 0, "cost at least $0.0163 (including $0.0040 for judges): prices are not known for 2 trials, 3.2 s"),
        (0, 1, "cost at least $0.0163 (including $0.0040 for judges): prices are not known for 1 trial, 3.2 s"),
        (2, 3, "cost at least $0.0163 (including $0.0040 for judges): prices are not known for 3 trials, 3.2 s"),
    ],
)
def test_a_sum_of_which_a_part_has_no_price_says_so(unpriced, judge_unpriced, said):
    counts = {"unpriced_trials": unpriced, "judge_unpriced_trials": judge_unpriced}
    assert said in lines(cost_usd=0.0123, judge_cost_usd=0.004, **counts)


@pytest.mark.parametrize(
    ("tokens", "judges", "said"),
    [
        (TokenUsage(1200, 300, 1500, cached=800), None, "tokens: 1,200 in (800 cached), 300 out"),
        (
            TokenUsage(1200, 300, 1500),
            TokenUsage(9, 8, 17, reasoning=5),
            "tokens: 1,200 in, 300 out; judges 9 in, 8 out (5 reasoning)",
        ),
        (None, TokenUsage(9, 8, 17), "tokens: judges 9 in, 8 out"),
    ],
)
def test_tokens_of_judges_are_said_apart(tokens, judges, said):
    assert said in lines(token_usage=tokens, judge_token_usage=judges)


def test_targets_are_shown_side_by_side_where_there_are_several():
    found = lines(matrix=MATRIX)
    assert "of 98 judged, 3 targets and 2 prompts together (95% CI" in found[1]
    assert found[2] == "targets and prompts side by side (pass rate with 95% CI):"
    assert any("plain" in line and "60.0% of 10 (40.0% to 90.0%)" in line for line in found)
    assert found[-2:] == lines()[-2:]


@pytest.mark.parametrize(
    ("share", "said"),
    [(1.0, "100.0%"), (0.9999, "99.99%"), (0.999, "99.9%"), (0.0001, "0.01%"), (0.0, "0.0%"), (1 - 1e-16, "100.0%")],
)
def test_a_rate_is_all_or_nothing_only_where_it_is(share, said):
    shown = f"pass rate {said} of 98 judged (95% CI {said} to {said};"
    assert shown in "\n".join(lines(pass_rate=share, pass_rate_interval=(share, share)))


def test_a_rate_of_cases_above_what_errors_allow_says_between_what_it_lies():
    """Two failed samples decide a case of three, whatever the result of its errored one."""
    given = {"rule_pass_rate": 0.5, "rule_pass_rate_interval": (0.2, 0.8), "rule_pass_rate_bounds": (0.35, 0.4)}
    given |= {"cases": Counts(20, 7, 7, 6, 0), "rule": CaseRule(3, "mean", 0.8)}
    assert lines(**given)[3].endswith(
        "50.0% of 14 judged (95% CI 20.0% to 80.0%; 35.0% to 40.0% whatever the result of the 6 errored)"
    )


def case(why="undecided", status="failed"):
    return EarlyCase("refund", "s", "gpt", None, status, 0.05, SamplingStop(why, 12, 5, 0.031, 0.7902))


BOUNDS = "anytime-valid bounds of the rate: 3.1% to 79.0%, error rate at most 5.0% each"


@pytest.mark.parametrize(
    ("why", "status", "said"),
    [
        ("undecided", "failed", "undecided (fails by this share)"),
        ("undecided", "passed", "undecided (passes by this share)"),
        ("below", "failed", "the rate is below the threshold"),
        ("gate", "failed", "a required assertion failed"),
        ("above", "failed", "the rate is above the threshold, but a required assertion failed"),
    ],
)
def test_a_case_in_words(why, status, said):
    assert early_words(case(why, status)) == f"5 of 12 passed, {said}; {BOUNDS}"


def test_they_are_listed_for_pipes_and_on_a_terminal():
    summary = replace(OF_A_RUN, early_stops=EarlyStops(0.05, 0, 1, 12, 0, (case(),), 3))
    line = f"5 of 12 passed, undecided (fails by this share); {BOUNDS}"
    more = "and 3 more cases that failed or are undecided, in summary.json"
    assert render_plain(RunView(1), summary, **LOOKS).split("\n")[:2] == [f"SAMPLES refund: {line}", more]
    drawn = render_terminal(RunView(1), summary, color=False, width=200, **LOOKS).split("\n")
    assert drawn[0] == "Samples that ended early: cases that failed or are undecided (4)"
    assert " ".join(drawn[2].split()) == f"refund ~ {line}"
    assert drawn[3] == more


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


SAID = f"judge 'j' gave no verdict that can be read; it replied '{'x' * 100}'"


def test_what_an_assertion_says_is_not_said_of_the_trial_too():
    score = errored_score(name="select-best: 'shortest'")
    score = structs.replace(score, grade=structs.replace(score.grade, error=Failure("unreadable-verdict", SAID)))
    error = Failure("unreadable-verdict", f"select-best: 'shortest': {SAID}")
    view = trial_view("errored", finished("errored", error=error, scores=[score]))
    assert reason(view) == "unreadable-verdict: select-best: 'shortest'"
    assert SAID in check(view.findings[0])
    assert SAID in reason(structs.replace(view, findings=()))
