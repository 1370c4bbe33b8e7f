import msgspec
import pytest
from msgspec.structs import replace

from agentv.model.run.row import Row
from agentv.model.values.usage import TokenUsage
from agentv.stats.intervals.design_effect import estimated_rate
from agentv.stats.intervals.proportion import wilson_interval
from agentv.stats.samples.case_samples import LISTED, CaseSamples, SamplesTally
from agentv.store.files.encoding import to_json
from agentv.store.rows.rows import row_of
from agentv.store.totals.summary import PlannedCounts, summarize
from doubles.trials import ROOT, finished, trial


def row(status, case_id, target, *, cost_usd=None, duration_ms=10.0, token_usage=None, reused=False, **given):
    subject = trial(case_id, target=target, **given)
    result = finished(
        status, trial=subject, cost_usd=cost_usd, duration_ms=duration_ms, token_usage=token_usage, reused=reused
    )
    return msgspec.json.decode(to_json(row_of(result, ROOT)), type=Row)


def summary(*rows, replaced=()):
    return summarize(rows, run_id="r", planned=PlannedCounts(), duration_ms=1.0, replaced=replaced)


def cells(found):
    return {(one.prompt, one.target): one for one in found.matrix.cells}


def test_cells_count_what_ran_with_their_target_and_prompt():
    found = summary(
        row("passed", "a", "gpt", prompt_id="brief"),
        row("failed", "a", "gpt", prompt_id="long"),
        row("passed", "b", "gpt", prompt_id="brief"),
        row("errored", "a", "claude", prompt_id="brief"),
    )
    shown = (found.matrix.targets, found.matrix.prompts, found.matrix.variants)
    assert shown == (("claude", "gpt"), ("brief", "long"), (None,))
    rates = {place: (one.totals.pass_rate, one.totals.cases.errored) for place, one in cells(found).items()}
    assert rates == {("brief", "claude"): (None, 1), ("brief", "gpt"): (1.0, 0), ("long", "gpt"): (0.0, 0)}
    assert {one.name: one.totals for one in found.matrix.by_target} == found.by_target
    assert {one.name: one.totals for one in found.matrix.by_prompt} == found.by_prompt
    assert found.matrix.by_variant == ()


def test_costs_of_cells_sum_to_the_cost_of_the_run():
    again = row("failed", "a", "gpt", cost_usd=0.5)
    found = summary(
        row("passed", "a", "gpt", cost_usd=0.25),
        row("passed", "b", "gpt", token_usage=TokenUsage(1, 1, 2)),
        row("passed", "a", "claude", cost_usd=2.0, reused=True),
        row("failed", "b", "claude", cost_usd=0.125),
        replaced=[again],
    )
    gpt, claude = (cells(found)[None, name].usage for name in ("gpt", "claude"))
    assert (gpt.cost_usd, gpt.unpriced_trials, gpt.reused) == (0.75, 1, 0)  # the repeated attempt was paid for
    assert (claude.cost_usd, claude.reused) == (0.125, 1)
    assert found.cost_usd == gpt.cost_usd + claude.cost_usd


def test_the_cost_of_an_answer_is_its_price_whoever_paid_for_it():
    found = summary(
        row("passed", "a", "gpt", cost_usd=0.1, reused=True),
        row("failed", "b", "gpt", cost_usd=0.3),
        row("shown", "c", "gpt"),
        row("passed", "a", "claude"),
    )
    gpt, claude = (cells(found)[None, name].usage for name in ("gpt", "claude"))
    assert (gpt.cost_per_answer_usd, gpt.priced_answers, gpt.answers) == (0.2, 2, 3)
    assert (claude.cost_per_answer_usd, claude.answers) == (None, 1)


def test_latency_is_that_of_answers_and_not_of_errors():
    fast = [row("passed", f"c{at}", "gpt", duration_ms=100.0 + at) for at in range(20)]
    found = summary(*fast, row("errored", "slow", "gpt", duration_ms=60000.0), row("passed", "a", "claude"))
    gpt, claude = (cells(found)[None, name].usage for name in ("gpt", "claude"))
    assert (gpt.answers, gpt.latency_ms, gpt.latency_p95_ms) == (20, 109.5, 118.0)  # float32, rounded to a tenth
    assert claude.latency_p95_ms is None  # one answer has no percentile


def test_a_run_that_its_results_cut_short_has_no_interval_in_any_cell():
    found = summary(row("passed", "a", "gpt"), row("failed", "a", "claude")).cut_short("fail-fast")
    groups = (*found.matrix.cells, *found.matrix.by_target)
    assert [one.totals.pass_rate_interval for one in groups] == [None] * 4
    assert replace(found.matrix, comparisons=()).cut_short().comparisons is None


def tallied(*cases):
    tally = SamplesTally()
    for number, (judged, passed) in enumerate(cases):
        tally.add(CaseSamples(f"case-{number:04}", "s", "t", None, judged, passed), number)
    return tally.samples()


def test_a_case_says_how_often_it_passes_and_how_sure_that_is():
    (case,) = tallied((5, 3)).by_case
    assert (case.test_id, case.judged, case.passed, case.pass_rate, case.flaky) == ("case-0000", 5, 3, 0.6, True)
    assert case.pass_rate_interval == wilson_interval(3, 5)
    assert case.pass_at_k == {1: pytest.approx(0.6), 2: pytest.approx(0.9), 4: 1.0, 5: 1.0}
    assert case.pass_hat_k == {1: pytest.approx(0.6), 2: pytest.approx(0.3), 4: 0.0, 5: 0.0}


def test_means_are_over_the_same_cases_for_every_k():
    found = tallied((4, 4), (4, 2), (3, 0))
    assert found.pass_at_k == {1: 0.75, 2: pytest.approx((1 + 5 / 6) / 2), 4: 1.0}
    assert found.pass_hat_k == {1: 0.75, 2: pytest.approx((1 + 1 / 6) / 2), 4: 0.5}
    assert (found.cases, found.complete) == (3, 2)
    most = tallied((2, 2), (2, 0), (4, 4))  # a case with more samples is complete too
    assert (most.pass_at_k, most.complete) == ({1: pytest.approx(2 / 3), 2: pytest.approx(2 / 3)}, 3)


def test_flaky_cases_are_counted_and_come_first():
    found = tallied((5, 5), (5, 0), (5, 4), (5, 1), (1, 1))
    assert (found.cases, found.compared, found.flaky) == (5, 4, 2)
    assert found.flaky_share_interval == wilson_interval(2, 4)
    assert found.always_passed == {1: 1, 5: 1}
    shown = [(case.passed, case.flaky) for case in found.by_case]
    assert shown == [(1, True), (4, True), (0, False), (5, False), (1, False)]


def test_the_interval_of_the_flaky_share_counts_a_case_once_on_however_many_targets():
    tally = SamplesTally()
    for target in ("gpt", "claude", "llama"):
        for number in range(8):
            tally.add(CaseSamples(f"case-{number}", "s", target, None, 2, 1 if number < 2 else 2), number)
    found = tally.samples()
    assert (found.compared, found.flaky) == (24, 6)
    assert found.flaky_share_interval == estimated_rate([(3, 3)] * 2 + [(3, 0)] * 6).interval
    assert found.flaky_share_interval[0] < wilson_interval(6, 24)[0]


def test_one_estimator_tells_each_chance_with_its_interval():
    found = tallied((5, 5), (5, 3), (5, 1), (5, 0))
    for at, sure in ((found.pass_at_k, found.pass_at_k_interval), (found.pass_hat_k, found.pass_hat_k_interval)):
        assert at.keys() == sure.keys() == {1, 2, 4, 5}
        assert all(low <= at[k] <= high and high - low > 0.3 for k, (low, high) in sure.items())
    assert found.pass_at_k_interval[1] == found.pass_hat_k_interval[1]
    assert tallied((5, 3)).pass_at_k_interval[5] == pytest.approx(wilson_interval(1, 1))
    together = SamplesTally()
    for number in range(4):
        together.add(CaseSamples(f"case-{number}", "s", "t", None, 5, 3), 7)
    assert together.samples().pass_at_k_interval == {}
    assert together.samples().flaky_share_interval is None


def test_a_bounded_number_is_listed_and_all_are_counted():
    found = tallied(*[(2, 2)] * (3 * LISTED), (2, 1))
    assert (found.cases, len(found.by_case), found.omitted) == (3 * LISTED + 1, LISTED, 2 * LISTED + 1)
    assert found.by_case[0].flaky
    assert found.by_case[1].test_id == "case-0000"
