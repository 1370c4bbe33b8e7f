import json
import random
from collections import Counter
from datetime import UTC, datetime

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.run.matrix import Counts
from agentv.model.run.row import Row
from agentv.model.run.summary import CaseRule
from agentv.model.values.usage import TokenUsage
from agentv.reports.run.rates import rate_words
from agentv.stats.intervals.design_effect import estimated_rate
from agentv.stats.intervals.proportion import wilson_interval
from agentv.store.files.directory import SUMMARY, RunDirectory
from agentv.store.files.encoding import to_json
from agentv.store.rows.rows import row_of
from agentv.store.totals.group_tally import GroupTally
from agentv.store.totals.summary import PlannedCounts, summarize
from agentv.store.totals.tally import Profile, TalliedCase, Trials
from doubles.trials import ROOT, finished, scored, trial

_SPENT = ("cost_usd", "judge_cost_usd", "token_usage", "judge_token_usage")
PROFILE = Profile("s", "t", None, (), 0.8, 1, "mean")
NOW = datetime(2026, 11, 21, 14, 3, 22, tzinfo=UTC)


def row(status="passed", case_id="a", *, score=None, scores=(), **given):
    """Return a row, read back from a file; missing fields are as the writer sets them."""
    spent = {name: given.pop(name) for name in _SPENT if name in given}
    chosen = {"passed": 1.0, "failed": 0.0}.get(status) if score is None else score
    result = finished(status, trial=trial(case_id, **given), score=chosen, scores=scores, **spent)
    return msgspec.json.decode(to_json(row_of(result, ROOT)), type=Row)


def summary(*rows, planned=None, **given):
    return summarize(rows, run_id="r", planned=planned or PlannedCounts(), duration_ms=1500.0, **given)


@pytest.mark.parametrize("rows", [(), (row("errored"),)])
def test_where_nothing_was_judged_there_is_no_rate(rows):
    found = summary(*rows, planned=PlannedCounts(1, 1))
    assert (found.pass_rate, found.pass_rate_interval, found.mean_score) == (None, None, None)
    assert (found.interval_clusters, found.mean_score_interval, found.clustered_by) == (None, None, ())


def test_a_case_counts_once_as_the_worst_that_it_came_to():
    found = summary(row(target="one"), row("failed", target="two"), row(target="three", prompt_id="p"))
    assert (found.cases, found.trials) == (Counts(1, 0, 1, 0, 0), Counts(3, 2, 1, 0, 0))
    worst = [("passed", "failed"), ("failed", "errored"), ("passed", "skipped"), ("passed", "passed")]
    rows = [row(s, f"c{number}", target=t) for number, two in enumerate(worst) for s, t in zip(two, "ab", strict=True)]
    assert summary(*rows).cases == Counts(4, 1, 1, 1, 1)
    assert {name: group.cases.total for name, group in summary(*rows).by_target.items()} == {"a": 4, "b": 4}


def test_a_case_that_did_not_run_on_every_target_has_not_passed():
    rows = [row("passed", f"c{case}", target="a") for case in range(10)]
    rows += [row("passed", f"c{case}", target="b") for case in range(4)]
    found = summary(*rows, planned=PlannedCounts(10, 20))
    assert (found.cases, found.trials) == (Counts(10, 4, 0, 0, 6), Counts(20, 14, 0, 0, 6))
    nothing_of_two = summary(*rows, planned=PlannedCounts(12, 24))
    assert nothing_of_two.cases.passed <= 4
    assert nothing_of_two.cases.skipped >= 8


def test_a_case_has_not_passed_where_a_whole_target_did_not_run():
    rows = [row("failed" if case < 2 else "passed", f"c{case}", target="a") for case in range(6)]
    planned = PlannedCounts(10, 20, targets=("a", "b"), several=True)
    found = summary(*rows, planned=planned)
    assert found.cases == found.by_suite["refunds"].cases == Counts(10, 0, 2, 0, 8)
    assert (found.by_target["b"].judged, found.matrix) == (0, None)
    assert "of 6 judged, on 1 of 2 targets (" in rate_words(found)
    both = summary(*rows, *(row("passed", f"c{case}", target="b") for case in range(6)), planned=planned)
    assert (both.cases, "2 targets together" in rate_words(both)) == (Counts(10, 0, 2, 0, 8), True)
    alone = summary(*rows, planned=PlannedCounts(6, 6, targets=("a", "b"), several=True))  # none is missing
    assert (alone.cases, [*alone.by_target]) == (Counts(6, 4, 2), ["a"])


def _asked(suite, number, *places, failing=0):
    """Return rows of this many cases at all these targets and prompts; the first `failing` ones fail at all of them."""
    return [
        row("failed" if case < failing else "passed", f"case-{case}", suite=suite, target=target, prompt_id=prompt)
        for case in range(number)
        for target, prompt in places
    ]


def test_the_interval_counts_a_case_once_on_however_many_targets_and_prompts():
    one = summary(*_asked("s", 30, ("gpt", None), failing=6))
    two = summary(*_asked("s", 30, ("gpt", None), ("claude", None), failing=6))
    four = summary(*_asked("s", 30, ("gpt", "a"), ("gpt", "b"), ("claude", "a"), ("claude", "b"), failing=6))
    assert (one.cases.total, two.cases.total, four.cases.total) == (30, 30, 30)
    assert one.interval_clusters == two.interval_clusters == four.interval_clusters == 30
    assert one.pass_rate_interval == wilson_interval(24, 30)
    assert (two.judged, two.pass_rate_interval) == (60, estimated_rate([(2, 2)] * 24 + [(2, 0)] * 6).interval)
    assert four.pass_rate_interval == estimated_rate([(4, 4)] * 24 + [(4, 0)] * 6).interval
    for found in (two, four):  # equal results on two targets are not independent evidence
        low, high = found.pass_rate_interval
        assert (low, high) == (pytest.approx(0.62, abs=0.02), pytest.approx(0.91, abs=0.02))
    assert four.by_suite["s"].pass_rate_interval == four.pass_rate_interval
    assert four.by_target["gpt"].pass_rate_interval == two.pass_rate_interval
    assert one.by_target["gpt"].pass_rate_interval == wilson_interval(24, 30)


def test_conversations_and_clusters():
    talks = [
        row("passed" if talk < 7 else "failed", f"{talk}-{turn}", conversation_id=f"talk-{talk}")
        for talk in range(10)
        for turn in range(10)
    ]
    found = summary(*talks)
    assert (found.interval_clusters, found.clustered_by) == (10, ("conversation_id",))
    assert found.pass_rate_interval == estimated_rate([(10, 10)] * 7 + [(10, 0)] * 3).interval
    assert found.by_suite["refunds"].pass_rate_interval == found.pass_rate_interval
    customers = [
        row("passed" if number < 14 else "failed", f"c{number}", cluster_key="customer", cluster=str(number // 2))
        for number in range(20)
    ]
    found = summary(*customers, *talks[:10])
    assert (found.interval_clusters, found.clustered_by) == (11, ("conversation_id", "customer"))
    of_tag = summary(*(row("passed", f"c{n}", cluster_key="customer", cluster="one") for n in range(5)))
    assert (of_tag.pass_rate, of_tag.pass_rate_interval, of_tag.interval_clusters) == (1.0, None, 1)


def test_one_customer_in_two_suites_is_one_cluster_and_one_conversation_is_two():
    same = [row(suite=suite, cluster_key="customer", cluster="acme") for suite in ("s", "t")]
    assert summary(*same, row("failed", "b")).interval_clusters == 2
    assert summary(*[row(suite=suite, conversation_id="talk") for suite in ("s", "t")]).interval_clusters == 2


def test_errors_are_bounds():
    rows = [row("passed", f"p{n}") for n in range(6)] + [row("failed", f"f{n}") for n in range(2)]
    found = summary(*rows, row("errored", "e"), row("errored", "f"), planned=PlannedCounts(20, 20))
    assert (found.pass_rate, found.judged, found.pass_rate_bounds) == (0.75, 8, (0.6, 0.8))
    assert found.by_suite["refunds"].pass_rate_bounds == (0.6, 0.8)
    assert summary(*rows).pass_rate_bounds == (0.75, 0.75)
    assert summary(row("errored")).pass_rate_bounds == (0.0, 1.0)
    assert summary(planned=PlannedCounts(1, 1)).pass_rate_bounds is None


def test_a_sample_tells_of_all_cases_that_it_was_drawn_from():
    rows = [row("passed" if number % 5 else "failed", f"c{number}") for number in range(50)]
    found = summary(*rows, planned=PlannedCounts(50, 50, drawn_from=60))
    low, high = found.pass_rate_interval_of_all
    assert (round(low * 60), round(high * 60)) == (pytest.approx(low * 60), pytest.approx(high * 60))  # whole cases
    assert found.pass_rate_interval[0] < low < found.pass_rate == 0.8 < high < found.pass_rate_interval[1]
    assert low >= 40 / 60
    assert high <= 50 / 60
    assert found.cut_short("max-errors").pass_rate_interval_of_all is None
    assert "pass_rate_interval_of_all" not in summary(*rows).as_json()
    all_passed = summary(
        *(row("passed", f"c{number}") for number in range(50)), planned=PlannedCounts(50, 50, drawn_from=60)
    )
    assert all_passed.pass_rate_interval_of_all == (59 / 60, 1.0)


@pytest.mark.parametrize(("drawn", "of"), [(50, 60), (20, 60), (14, 200), (150, 200)])
@pytest.mark.parametrize("failing", [0, 1, 3, 0.2, 0.5])
def test_the_interval_of_all_cases_holds_their_rate(drawn, of, failing):
    failed = failing if failing >= 1 else round(failing * of)
    found = Counter(np.random.default_rng(1).hypergeometric(of - failed, failed, drawn, 4000).tolist())
    held = 0
    for passed, number in found.items():
        tally = GroupTally(clustered=False)
        for case in range(drawn):
            status = "passed" if case < passed else "failed"
            tally.add(TalliedCase(status, PROFILE, case, Trials(1, status == "passed", 0, 0.0, 0.0), True, True))
        low, high = tally.interval_of_all(of)
        held += number * (low - 1e-9 <= (of - failed) / of <= high + 1e-9)
    assert held >= 0.92 * 4000  # Wilson's interval covers less than its level where nearly all cases agree


def _samples(case_id, *statuses, **given):
    return [
        row(status, case_id, sample=number, repeat=len(statuses), **given) for number, status in enumerate(statuses, 1)
    ]


def test_an_errored_sample_drops_itself_and_not_its_case():
    found = summary(*_samples("a", "passed", "failed", "errored"), *_samples("b", "passed", "passed", "passed"))
    assert (found.pass_rate, found.judged) == ((1 / 2 + 1) / 2, 5)  # the mean of the two cases
    assert found.pass_rate_bounds == ((1 / 3 + 1) / 2, (2 / 3 + 1) / 2)
    assert (found.cases, found.rule_pass_rate) == (Counts(2, 1, 0, 1, 0), 1.0)
    assert found.rule_pass_rate_bounds == (0.5, 0.5)  # 2 of 3 are too few, whatever the errored one's result
    assert found.mean_score == 0.75


@pytest.mark.parametrize(
    ("aggregate", "statuses", "bounds"),
    [
        ("mean", ("passed", "passed", "errored"), (0.0, 1.0)),
        ("pass_any", ("passed", "failed", "errored"), (1.0, 1.0)),
        ("pass_all", ("passed", "failed", "errored"), (0.0, 0.0)),
        ("majority", ("passed", "passed", "errored"), (1.0, 1.0)),
    ],
)
def test_the_bounds_of_the_rule_are_those_of_its_samples(aggregate, statuses, bounds):
    found = summary(*_samples("a", *statuses, aggregate=aggregate))
    assert (found.rule_pass_rate, found.rule_pass_rate_bounds) == (None, bounds)


def test_a_gate_that_an_errored_sample_could_not_show_is_open_at_best_and_shut_at_worst():
    rows = [
        row(sample=1, repeat=2, aggregate="pass_any", scores=[scored(True, required=True)]),
        row("errored", sample=2, repeat=2, aggregate="pass_any"),
    ]
    assert summary(*rows).rule_pass_rate_bounds == (0.0, 1.0)


def test_the_two_rates_are_named_apart():
    rows = [one for number in range(8) for one in _samples(f"c{number}", *["passed"] * 3, "failed")]
    found = summary(*rows)
    assert (found.pass_rate, found.judged, found.interval_clusters) == (0.75, 32, 8)
    assert (found.rule_pass_rate, found.rule) == (0.0, CaseRule(4, "mean", 0.8))
    assert found.rule_pass_rate_interval == wilson_interval(0, 8)
    alone = summary(row())
    assert alone.rule_pass_rate is None
    assert "rule_pass_rate" not in alone.as_json()
    assert summary(*rows, row("passed", "alone")).rule is None


@pytest.mark.parametrize("repeat", [1, 2, 5, 10])
def test_the_pass_rate_means_the_same_whatever_the_repeat(repeat):
    rng = random.Random(4)
    rows = [
        row("passed" if rng.random() < 0.75 else "failed", f"c{case}", sample=sample, repeat=repeat)
        for case in range(120)
        for sample in range(1, repeat + 1)
    ]
    assert summary(*rows).pass_rate == pytest.approx(0.75, abs=0.06)


def _early(case_id, *outcomes, repeat=4, **given):
    rows = {"repeat": repeat, "alpha": 0.05, **given}
    return [
        row("passed" if passed else "failed", case_id, sample=number, **rows)
        for number, passed in enumerate(outcomes, 1)
    ]


def test_cases_whose_samples_may_end_early_are_in_no_mean_and_no_rate_of_samples():
    steady = [row("passed", "b", sample=sample, repeat=2, suite="other") for sample in (1, 2)]
    found = summary(*_early("a", True, False, True, False), *steady)
    shown = (found.mean_score, found.by_suite["refunds"].mean_score, found.by_suite["other"].mean_score)
    assert shown == (None, None, 1)
    assert found.samples is not None
    assert [case.test_id for case in found.samples.by_case] == ["b"]
    assert summary(*_early("a", True, False, True, False)).samples is None


def test_of_cases_whose_samples_may_end_early_those_that_failed_or_are_undecided_are_told():
    rows = [
        *_early("passes-undecided", True, True, True, True),
        *_early("below", *[False] * 6, repeat=20),
        *_early("above", *[True] * 16, repeat=20),
        *_early("fails-undecided", False, True, True, True),
        *_early("goes-on", False),
    ]
    found = summary(*rows).early_stops
    assert (found.decided, found.undecided) == (2, 2)
    assert [(case.test_id, case.status, case.stopped.why, case.stopped.passed) for case in found.by_case] == [
        ("below", "failed", "below", 0),
        ("fails-undecided", "failed", "undecided", 3),
        ("passes-undecided", "passed", "undecided", 4),
    ]
    _, undecided, _ = found.by_case
    assert undecided.stopped.low < wilson_interval(3, 4)[0]
    assert undecided.stopped.high > wilson_interval(3, 4)[1]


def test_a_bounded_number_of_them_is_listed(monkeypatch):
    monkeypatch.setattr("agentv.store.totals.distinct.LISTED", 2)
    rows = [one for number in range(7) for one in _early(f"case-{number}", False, False, False)]
    found = summary(*rows[::-1]).early_stops
    assert ([case.test_id for case in found.by_case], found.omitted) == (["case-0", "case-1"], 5)


@pytest.mark.parametrize(
    ("aggregate", "status"),
    [("mean", "failed"), ("pass_any", "passed"), ("pass_all", "failed"), ("majority", "passed")],
)
def test_samples_are_put_together_as_the_row_says(aggregate, status):
    given = {"repeat": 3, "aggregate": aggregate}
    rows = [row(sample=1, **given), row(sample=2, **given), row("failed", sample=3, **given)]
    assert getattr(summary(*rows).cases, status) == 1


def test_a_gate_holds_in_the_mean_or_fails_the_case():
    def sample(number, passed):
        return row(
            "passed" if passed else "failed", score=1.0, scores=[scored(passed, required=True)], sample=number, repeat=2
        )

    assert summary(sample(1, True), sample(2, True)).cases.passed == 1
    assert summary(sample(1, True), sample(2, False)).cases.failed == 1


def test_a_missing_sample_is_no_pass():
    found = summary(row(sample=1, repeat=3), row(sample=2, repeat=3), planned=PlannedCounts(1, 3))
    assert found.cases == Counts(1, 0, 0, 0, 1)
    assert found.trials == Counts(3, 2, 0, 0, 1)
    assert (found.pass_rate, found.judged, found.rule_pass_rate) == (1.0, 2, None)


def test_the_last_row_of_a_trial_counts_and_money_is_summed():
    found = summary(row("failed", cost_usd=0.1), row("passed", cost_usd=0.2))
    assert found.trials == found.cases == Counts(1, 1, 0, 0, 0)
    assert found.mean_score == 1.0
    assert found.cost_usd == 0.3
    reverse = summary(row("passed", sample=2, repeat=2), row(sample=1, repeat=2), row("errored", sample=2, repeat=2))
    assert reverse.cases == Counts(1, 0, 0, 1, 0)


def test_tokens_without_a_price_are_counted_so_that_no_sum_pretends():
    rows = [
        row("passed", "a", cost_usd=0.1, token_usage=TokenUsage(1, 2, 3)),
        row("passed", "b", token_usage=TokenUsage(1, 2, 3)),
        row("passed", "c"),
    ]
    found = summary(*rows)
    assert (found.cost_usd, found.unpriced_trials, found.judge_unpriced_trials) == (0.1, 1, 0)


def test_what_judges_spent_is_summed_apart():
    rows = [
        msgspec.structs.replace(row("passed", "a"), judge_token_usage=TokenUsage(5, 6, 11), judge_cost_usd=0.1),
        msgspec.structs.replace(row("passed", "b"), judge_token_usage=TokenUsage(5, 6, 11)),
    ]
    found = summary(*rows)
    assert (found.judge_token_usage, found.token_usage) == (TokenUsage(10, 12, 22), None)
    assert (found.judge_cost_usd, found.judge_unpriced_trials, found.unpriced_trials) == (0.1, 1, 0)


def test_groups():
    rows = [
        row("passed", "a", tags=("smoke", "slow")),
        row("failed", "b", tags=("smoke",)),
        row("errored", "c", suite="other", target="claude"),
    ]
    found = summary(*rows, planned=PlannedCounts(6, 6, {"refunds": 4, "third": 1}, {"claude": 2}, {"slow": 1}))
    shown = {name: group.cases for name, group in found.by_suite.items()}
    assert shown == {"other": Counts(1, 0, 0, 1, 0), "refunds": Counts(4, 1, 1, 0, 2), "third": Counts(1, 0, 0, 0, 1)}
    assert {name: group.cases.total for name, group in found.by_target.items()} == {"claude": 2, "gpt": 2}
    shown = {name: (group.pass_rate, group.mean_score) for name, group in found.by_tag.items()}
    assert shown == {"slow": (1.0, 1.0), "smoke": (0.5, 0.5)}


outcomes = st.tuples(
    st.sampled_from(["passed", "failed", "errored"]), st.integers(0, 5), st.integers(1, 2), st.floats(0, 1)
)


@given(st.lists(outcomes, unique_by=lambda outcome: outcome[1:3]), st.randoms(use_true_random=False))
def test_the_order_in_which_trials_end_does_not_matter(ended, shuffle: random.Random):
    rows = [row(status, f"case-{case}", sample=sample, repeat=2, score=score) for status, case, sample, score in ended]
    shuffled = list(rows)
    shuffle.shuffle(shuffled)
    assert summary(*rows) == summary(*shuffled)


@given(st.lists(outcomes, unique_by=lambda outcome: outcome[1]))
def test_every_case_is_counted_once(ended):
    found = summary(*(row(status, f"case-{case}", score=score) for status, case, _, score in ended))
    counts = found.cases
    assert counts.total == counts.passed + counts.failed + counts.errored == len(ended)
    assert found.trials == counts


def test_summary_json_is_what_section_13_says(tmp_path):
    found = summary(row(tags=("smoke",), cost_usd=0.1, token_usage=TokenUsage(1, 2, 3)), planned=PlannedCounts(2, 2))
    with RunDirectory.create(tmp_path, NOW) as directory:
        directory.write(SUMMARY, found.as_json())
        written = json.loads((directory.path / "summary.json").read_text())
    counts = {"total": 2, "passed": 1, "failed": 0, "errored": 0, "skipped": 1, "shown": 0}
    group = {"cases": {**counts, "total": 1, "skipped": 0}, "pass_rate": 1.0, "mean_score": 1.0}
    sure = {"pass_rate_interval": list(wilson_interval(1, 1)), "pass_rate_bounds": [1.0, 1.0], "judged": 1}
    sure |= {"interval_clusters": 1, "clustered_by": ["case"], "mean_score_interval": list(wilson_interval(1, 1))}
    sure["mean_score_interval"] = [round(bound, 9) for bound in sure["mean_score_interval"]]
    group |= sure
    assert written == {
        "schema_version": 1,
        "run_id": "r",
        "cases": counts,
        "trials": counts,
        "pass_rate": 1.0,
        "pass_rate_interval": list(wilson_interval(1, 1)),
        "mean_score": 1.0,
        "cost_usd": 0.1,
        "judge_cost_usd": None,
        "token_usage": {"input": 1, "output": 2, "total": 3, "cached": None, "reasoning": None},
        "duration_ms": 1500.0,
        "judge_token_usage": None,
        "unpriced_trials": 0,
        "judge_unpriced_trials": 0,
        "processes": 1,
        **sure,
        "by_suite": {"refunds": group},
        "by_target": {"gpt": group},
        "by_prompt": {},
        "by_tag": {"smoke": group},
    }
    assert list(written)[:3] == ["schema_version", "run_id", "cases"]
