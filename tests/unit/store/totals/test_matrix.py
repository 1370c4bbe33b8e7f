from __future__ import annotations

import msgspec
from msgspec.structs import replace

from agentv.model.run.row import Row
from agentv.model.values.usage import TokenUsage
from agentv.store.files.encoding import to_json
from agentv.store.rows.rows import RelativePaths, row_of
from agentv.store.totals.summary import PlannedCounts, summarize
from doubles.trials import ROOT, finished, trial


def row(status, case_id, target, *, cost_usd=None, duration_ms=10.0, token_usage=None, reused=False, **given):
    subject = trial(case_id, target=target, **given)
    result = finished(
        status, trial=subject, cost_usd=cost_usd, duration_ms=duration_ms, token_usage=token_usage, reused=reused
    )
    return msgspec.json.decode(to_json(row_of(result, RelativePaths(ROOT))), type=Row)


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
    assert (found.matrix.targets, found.matrix.prompts, found.matrix.variants) == (
        ("claude", "gpt"),
        ("brief", "long"),
        (None,),
    )
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
    assert (gpt.cost_usd, gpt.unpriced_trials, gpt.reused) == (0.75, 1, 0)  # the attempt that was repeated was paid for
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
    assert (gpt.answers, gpt.latency_ms, gpt.latency_p95_ms) == (20, 109.5, 118.0)  # as float32, to a tenth
    assert claude.latency_p95_ms is None  # of one answer


def test_a_run_that_its_results_cut_short_has_no_interval_in_any_cell():
    found = summary(row("passed", "a", "gpt"), row("failed", "a", "claude")).cut_short("fail-fast")
    groups = (*found.matrix.cells, *found.matrix.by_target)
    assert [one.totals.pass_rate_interval for one in groups] == [None] * 4
    assert replace(found.matrix, comparisons=()).cut_short().comparisons is None
