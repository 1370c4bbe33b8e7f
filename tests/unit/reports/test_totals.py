from __future__ import annotations

from dataclasses import replace

import pytest

from agentv.model.response import TokenUsage
from agentv.model.sampling import EarlyStops
from agentv.model.summary import Counts, Group, Summary
from agentv.reports.totals import duration, money, totals

SUMMARY = Summary(
    run_id="r",
    cases=Counts(100, 95, 3, 2, 0),
    trials=Counts(100, 95, 3, 2, 0),
    pass_rate=95 / 98,
    pass_rate_interval=(0.9138, 0.9895),
    mean_score=0.9444,
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
        "pass rate 96.9% of 98 judged (95% interval 91.4% to 99.0%), mean score 0.94",
        "cost unknown, 3.2 s",
        "results: out/run",
    ]


def test_an_interval_of_cases_on_several_targets_says_that_it_counts_them_once():
    assert lines(interval_cases=98) == lines()
    assert lines(interval_cases=49)[1] == (
        "pass rate 96.9% of 98 judged (95% interval 91.4% to 99.0%, each case counted once: 49), mean score 0.94"
    )


def test_what_was_not_run_is_said():
    assert lines(cases=Counts(5, 1, 0, 0, 4))[0] == "5 cases: 1 passed, 0 failed, 0 errored, 4 not run"


def test_one_case_is_one_case():
    assert (
        lines(cases=Counts(1, 1, 0, 0, 0), trials=Counts(1, 1, 0, 0, 0))[0] == "1 case: 1 passed, 0 failed, 0 errored"
    )


def test_trials_are_said_where_they_are_not_the_cases():
    found = lines(trials=Counts(300, 290, 8, 2, 0), noted=2)
    assert found[1:3] == [
        "300 trials: 290 passed, 8 failed, 2 errored",
        "2 passed trials with a check that did not pass",
    ]


@pytest.mark.parametrize(
    ("stops", "said"),
    [
        (
            EarlyStops(0.05, 2, 0, 19, 41),
            "decided 2 of 2 cases with 19 of 60 samples, each wrongly with a chance of 5.0% at most",
        ),
        (
            EarlyStops(0.05, 2, 1, 79, 41),
            (
                "decided 2 of 3 cases with 79 of 120 samples, each of these 2 wrongly with a chance of 5.0% at most; "
                "1 is undecided: it goes by the share that passed, which is no proof"
            ),
        ),
        (
            EarlyStops(0.05, 1, 2, 79, 41),
            (
                "decided 1 of 3 cases with 79 of 120 samples, it wrongly with a chance of 5.0% at most; "
                "2 are undecided: they go by the share that passed, which is no proof"
            ),
        ),
        (
            EarlyStops(0.05, 0, 3, 60, 0),
            (
                "decided 0 of 3 cases with 60 of 60 samples; "
                "3 are undecided: they go by the share that passed, which is no proof"
            ),
        ),
    ],
)
def test_how_sure_a_decision_is_is_said_of_decided_cases_alone(stops, said):
    assert said in lines(early_stops=stops, cases=Counts(3, 2, 1, 0, 0))


def test_samples_of_errored_cases_are_no_savings_and_said_to_be_there():
    line = lines(early_stops=EarlyStops(0.05, 2, 0, 19, 41))[2]
    assert line.startswith("decided 2 of 2 cases with 19 of 60 samples (those of errored cases included), each wrongly")


def test_where_no_case_came_to_its_end_nothing_is_said_of_decisions():
    assert lines(early_stops=EarlyStops(0.05, 0, 0, 3, 57)) == lines()


def test_passed_cases_with_a_failed_check_are_said():
    assert lines(noted=1)[1] == "1 passed case with a check that did not pass"


def test_where_nothing_was_judged_no_rate_is_said():
    found = lines(cases=Counts(1, 0, 0, 1, 0), pass_rate=None, pass_rate_interval=None, mean_score=None)
    assert "nothing was judged" in found


@pytest.mark.parametrize(
    ("cost", "judges", "said"),
    [
        (0.0123, None, "cost $0.0123, 3.2 s"),
        (0.0123, 0.004, "cost $0.0163 ($0.0040 of it judges), 3.2 s"),
        (None, 0.004, "cost $0.0040 ($0.0040 of it judges), 3.2 s"),
        (0.0, 0.0, "cost $0.00, 3.2 s"),
    ],
)
def test_cost(cost, judges, said):
    assert said in lines(cost_usd=cost, judge_cost_usd=judges)


@pytest.mark.parametrize(
    ("unpriced", "judge_unpriced", "said"),
    [
        (2, 0, "cost at least $0.0163 ($0.0040 of it judges): no price is known for 2 trials, 3.2 s"),
        (0, 1, "cost at least $0.0163 ($0.0040 of it judges): no price is known for 1 trial, 3.2 s"),
        (2, 3, "cost at least $0.0163 ($0.0040 of it judges): no price is known for 3 trials, 3.2 s"),
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
        (TokenUsage(total=1234), None, "tokens: 1,234 in all"),
    ],
)
def test_tokens_of_judges_are_said_apart(tokens, judges, said):
    assert said in lines(token_usage=tokens, judge_token_usage=judges)


@pytest.mark.parametrize(
    ("usd", "said"), [(0, "$0.00"), (0.00001, "<$0.0001"), (0.5, "$0.5000"), (9.99994, "$9.9999"), (123.456, "$123.46")]
)
def test_money(usd, said):
    assert money(usd) == said


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (0, "0.0 s"),
        (449, "0.4 s"),
        (59_900, "59.9 s"),
        (59_990, "1 min 00 s"),
        (125_000, "2 min 05 s"),
        (3_725_000, "1 h 02 min"),
    ],
)
def test_duration(milliseconds, said):
    assert duration(milliseconds) == said


def test_a_hostile_path_does_not_steer():
    assert totals(SUMMARY, 0, "out\x1b[2J")[-1] == "results: out\\x1b[2J"


def test_prompts_are_compared_where_there_are_several():
    brief, long = Group(Counts(4, 3, 1), 0.75, 0.9), Group(Counts(4, 0, 0, 4), None, None)
    assert lines(by_prompt={"brief": brief, "long\x1b[2J": long})[2:4] == [
        "with brief: 3 passed, 1 failed, 0 errored, mean score 0.90",
        "with long\\x1b[2J: 0 passed, 0 failed, 4 errored",
    ]
    assert lines(by_prompt={"brief": brief}) == lines()


def test_very_many_prompts_are_not_all_compared_below_the_totals():
    group = Group(Counts(1, 1), 1.0, 1.0)
    found = lines(by_prompt={f"p{number}": group for number in range(25)})
    assert sum(line.startswith("with p") for line in found) == 20
    assert "and 5 more prompts, in summary.json" in found


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (1.0, "100.0%"),
        (0.9999, "99.99%"),
        (0.999999, "99.9999%"),
        (0.999, "99.9%"),
        (0.5, "50.0%"),
        (0.0001, "0.01%"),
        (0.0, "0.0%"),
        (1 - 1e-16, "100.0%"),
        (1e-17, "0.0%"),
    ],
)
def test_a_rate_is_all_or_nothing_only_where_it_is(share, said):
    assert f"pass rate {said} of 98 judged (95% interval {said} to {said})" in "\n".join(
        lines(pass_rate=share, pass_rate_interval=(share, share))
    )
