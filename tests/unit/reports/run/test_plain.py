from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from agentv.model.values.response import Failure
from agentv.reports.run.plain import render_plain
from agentv.reports.run.samples import SHOWN
from agentv.reports.run.view import KEPT, RunView
from agentv.store.totals.samples import SamplesTally
from agentv.store.totals.tally import CaseSamples
from doubles.trials import finished, scored, trial
from doubles.views import LOOKS, SUMMARY, run_view

GOLD = Path(__file__).parents[1] / "gold"


def test_gold():
    rendered = render_plain(run_view(), SUMMARY, **LOOKS) + "\n"
    assert rendered == (GOLD / "plain.txt").read_text(encoding="utf-8")


def test_failed_and_errored_are_never_mixed_up():
    lines = render_plain(run_view(), SUMMARY, **LOOKS).split("\n")
    heads = [line.split()[0] for line in lines if line[:1].isupper()]
    assert heads == ["ERRORED"] * 2 + ["FAILED"] * 4 + ["PASSED"]


def test_what_is_not_held_is_counted():
    view = RunView(KEPT + 3)
    for number in range(KEPT + 3):
        view.add(finished("failed", trial=trial(f"c{number:04}")))
        view.add(finished("shown", trial=trial(f"s{number:04}")))
    lines = render_plain(view, SUMMARY, **LOOKS).split("\n")
    assert lines[:4] == [
        "FAILED 1,003 cases: output lacks '30 days'",
        "  first: c0000: score 0.00, needs 0.80",
        "  evals/refund.eval.yaml:14: failed: output lacks '30 days'",
        "  also: c0001, c0002, c0003, c0004, c0005 and 997 more cases",
    ]
    run = SUMMARY.run_id
    assert lines[4] == f"all 1,003 trials: agentv results show {run} --failed --limit 1003"
    assert f"SHOWN {KEPT + 3 - 20} more: agentv results show {run} --shown" in lines


def test_what_a_stopped_target_has_kept_from_running_is_one_line():
    view = RunView(6)
    for number in range(3):
        view.add(
            finished("skipped", trial=trial(f"c{number}"), error=Failure("target-stopped", "'gpt' is stopped: no"))
        )
    view.add(finished("skipped", error=Failure("target-stopped", "'claude' is stopped: no")))
    lines = render_plain(view, SUMMARY, **LOOKS).split("\n")
    assert lines[:2] == ["NOT RUN 3 trials: 'gpt' is stopped: no", "NOT RUN 1 trial: 'claude' is stopped: no"]
    assert (view.skipped, view.omitted("skipped")) == (4, 0)


def test_what_was_held_back_says_why_and_a_failed_turn_which_it_is():
    view = RunView(2)
    view.add(finished("failed", scores=[scored(False, text="contains 'Ann'", name="turn 2: contains: 'Ann'")]))
    why = Failure("dependency-not-passed", "'case-1', which it depends on, failed")
    view.add(finished("skipped", trial=trial("case-2"), error=why))
    lines = render_plain(view, SUMMARY, **LOOKS).split("\n")
    assert lines[:3] == [
        "FAILED case-1: score 0.00, needs 0.80",
        "  evals/refund.eval.yaml:14: failed: turn 2: contains 'Ann'",
        "NOT RUN case-2: dependency-not-passed: 'case-1', which it depends on, failed",
    ]


def test_samples_are_a_line_each_and_many_are_not_all_listed():
    tally = SamplesTally()
    for number in range(SHOWN + 1):
        tally.add(CaseSamples(f"c{number:03}", "s", "gpt", None, 2, 1), number)
    lines = render_plain(RunView(1), replace(SUMMARY, samples=tally.samples()), **LOOKS).split("\n")
    assert lines[0].startswith("SAMPLES c000: 1 of 2 passed, 50.0%")
    assert lines[SHOWN] == "and 1 more case that does not always pass, in summary.json"
