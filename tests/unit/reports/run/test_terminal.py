import io
import re
from pathlib import Path

import pyte
import pytest
from msgspec.structs import replace

from agentv.extensions.agents.trial.working import AgentsView
from agentv.model.run.events import AgentProgress
from agentv.model.values.response import Failure
from agentv.model.values.trace import AgentActivity
from agentv.reports.run.activation import activation_lines, triggering_json, triggering_lines
from agentv.reports.run.plain import render_plain
from agentv.reports.run.samples import HEADING
from agentv.reports.run.samples import SHOWN as SAMPLES_SHOWN
from agentv.reports.run.terminal import LiveProgress, render_terminal
from agentv.reports.run.view import KEPT, SHOWN, RunView
from agentv.stats.intervals.proportion import activation_of
from agentv.stats.samples.case_samples import CaseSamples, SamplesTally
from doubles.trials import finished, scored, trial
from doubles.views import LOOKS, SUMMARY, run_view

GOLD = Path(__file__).parents[1] / "gold"


class Terminal(io.StringIO):
    """A file that claims to be a terminal."""

    def isatty(self):
        return True


def seen(text, *, width, height=200):
    """Return what a terminal of this size shows after receiving the text."""
    screen = pyte.Screen(width, height)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    return [line.rstrip() for line in screen.display]


@pytest.mark.parametrize("width", [80, 120])
def test_gold(width):
    rendered = render_terminal(run_view(), SUMMARY, width=width, color=False, **LOOKS)
    lines = [line.rstrip() for line in rendered.split("\n")]
    assert "\n".join(lines) + "\n" == (GOLD / f"terminal-{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_no_line_is_wider_than_the_terminal(width):
    rendered = render_terminal(run_view(), SUMMARY, width=width, color=False, **LOOKS)
    lines = [line for line in rendered.split("\n") if "agentv eval" not in line]  # commands are never cut or wrapped
    assert max(map(len, lines)) <= width


def test_an_answer_cannot_repaint_the_terminal():
    painted = render_terminal(run_view(), SUMMARY, width=120, color=True, **LOOKS)
    text = "\n".join(seen(painted, width=120))
    assert "hostile\\x1b[2J" in text
    assert "\\x1b[31mred\\r\\nPASSED \\u202eevil [bold]not markup[/bold] :smile:" in text
    assert "Failures by cause (6)" in text


def test_many_are_not_all_listed_but_all_counted():
    view = RunView(SHOWN + 7)
    for number in range(SHOWN + 7):
        view.add(finished("failed", trial=trial(f"c{number}")))
        view.add(finished("shown", trial=trial(f"s{number}")))
        for case in ("x", "y"):  # so that no cause applies to only one case
            view.add(errored(f"{case}{number}", f"{chr(65 + number)}x"))
    rendered = render_terminal(view, SUMMARY, color=False, **LOOKS)
    run = SUMMARY.run_id
    assert f"Failures by cause ({SHOWN + 8})" in rendered
    assert f"8 more causes; all {3 * (SHOWN + 7)} trials: agentv results show {run} --failed --errored" in rendered
    assert f"and 7 more: agentv results show {run} --shown" in rendered
    assert rendered.count("first: ") == SHOWN


def errored(case, message):
    return finished("errored", trial=trial(case), error=Failure("http-status", message))


def live_frames(view, *, width=100):
    """Return everything sent to a terminal while a view was drawn, and what is visible at the end."""
    file = Terminal()
    ticks = iter(range(1000))
    with LiveProgress(file, clock=lambda: next(ticks) * 10.0, width=width) as live:
        live.update(view)
    sent = file.getvalue()
    return sent, seen(sent, width=width, height=10)


def test_the_live_line_counts_and_is_gone_in_the_end():
    sent, after = live_frames(run_view())
    assert "8/11  2 passed  4 failed  2 errored  $0.0012" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", sent)
    assert re.search(r"\d+ s left", sent)
    assert after == [""] * 10


def test_samples_stand_under_a_heading_with_their_rates_and_flaky_ones_marked():
    tally = SamplesTally()
    for name, passed in (("steady", 5), ("coin", 3)):
        tally.add(CaseSamples(name, "s", "gpt", None, 5, passed), passed)
    text = render_terminal(RunView(1), replace(SUMMARY, samples=tally.samples()), color=False, width=120, **LOOKS)
    lines = [" ".join(line.split()) for line in text.split("\n")]
    assert lines[0] == f"{HEADING} (1)"
    assert lines[2].startswith("coin ~ 3 of 5 passed, 60.0% (95% CI 23.1% to 88.2%)")
    assert "always passed: 1 case with 5 samples (95% CI of the rate of each 56.6% to 100.0%)" in lines
    assert "steady" not in text
    assert "flaky: 1 of 2 cases (50.0%, 95% CI 9.5% to 90.5%)" in lines


def test_working_agents_stand_below_the_bar_as_many_as_fit_and_are_gone_in_the_end():
    view = RunView(9)
    view.agents = AgentsView(lambda: 0.0)
    for number in range(9):
        done = AgentActivity("\x1b[2Jedit", number)
        view.agents.take(AgentProgress(f"{number}", f"case-{number}", "agent", activity=done))
    file = Terminal()
    with LiveProgress(file, width=60, height=8) as live:
        live.update(view)
        live.refresh()
        drawn = seen(file.getvalue(), width=60, height=8)
    assert drawn[0].split()[-6:] == ["0", "passed", "0", "failed", "0", "errored"]
    assert [line.split()[0] for line in drawn[1:6]] == ["case-0:", "case-1:", "case-2:", "case-3:", "and"]
    assert drawn[5] == "  and 5 more agents"
    assert drawn[6:] == ["", ""]
    assert "\\x1b[2Jedit" in drawn[1]
    assert seen(file.getvalue(), width=60, height=8) == [""] * 8


def test_gold_in_plain():
    assert render_plain(run_view(), SUMMARY, **LOOKS) + "\n" == (GOLD / "plain.txt").read_text(encoding="utf-8")


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
    assert render_plain(view, SUMMARY, **LOOKS).split("\n")[:3] == [
        "FAILED case-1: score 0.00, needs 0.80",
        "  evals/refund.eval.yaml:14: failed: turn 2: contains 'Ann'",
        "NOT RUN case-2: dependency-not-passed: 'case-1', which it depends on, failed",
    ]


def test_samples_are_a_line_each_and_many_are_not_all_listed():
    tally = SamplesTally()
    for number in range(SAMPLES_SHOWN + 1):
        tally.add(CaseSamples(f"c{number:03}", "s", "gpt", None, 2, 1), number)
    lines = render_plain(RunView(1), replace(SUMMARY, samples=tally.samples()), **LOOKS).split("\n")
    assert lines[0].startswith("SAMPLES c000: 1 of 2 passed, 50.0%")
    assert lines[SAMPLES_SHOWN] == "and 1 more case that does not always pass, in summary.json"


def queries(right: int, wrong: int, missed: int, out: int, **counts: int):
    """Return the query counts of one prompt: loaded rightly and wrongly, not loaded wrongly and rightly."""
    found = [("p", ["p"])] * right + [(None, ["p"])] * wrong + [("p", [])] * missed + [(None, [])] * out
    return replace(activation_of("p", found, ["p"]), **counts)


def test_people_are_told_every_count_that_a_share_rests_on():
    assert triggering_lines(queries(8, 2, 4, 6, errored=1, not_run=3)) == [
        "triggering: 14 of 20 queries right, 1 errored, 3 not run",
        "  precision 80.0% (8 of 10 that load it should; 95% CI 49.0% to 94.3%)",
        "  recall 66.7% (8 of 12 that should load it do; 95% CI 39.1% to 86.2%)",
        "  F1 72.7% (95% CI 49.2% to 88.0%)",
    ]


def test_what_is_not_defined_is_neither_0_nor_1():
    assert triggering_lines(queries(0, 0, 0, 1)) == [
        "triggering: 1 of 1 query right",
        "  precision undefined: none loads it",
        "  recall undefined: none should",
        "  F1 undefined: none loads it and none should",
    ]
    found = triggering_json(queries(0, 0, 0, 1))
    assert (found["precision"], found["recall"], found["f1"]) == (None, None, None)


def test_nothing_is_said_where_nothing_was_asked_and_errors_are_told_where_all_broke():
    assert triggering_lines(queries(0, 0, 0, 0)) == []
    assert triggering_lines(queries(0, 0, 0, 0, errored=2))[0] == "triggering: 2 errored"


def test_several_skills_have_a_sentence_their_measures_and_a_matrix():
    found = [("refund", ["refund"])] * 3 + [("refund", ["returns"])] * 2 + [("returns", ["returns"]), (None, [])]
    found += [(None, ["refund", "returns"])]
    shown = activation_of("shop", found, ["refund", "returns"])
    assert list(activation_lines(replace(shown, target="claude", errored=1))) == [
        (
            "activation with claude: 5 of 8 queries right, 1 errored; the most frequent mistake: 2 queries of 'refund' "
            "loaded 'returns'"
        ),
        (
            "  refund: precision 75.0% (3 of 4 that load it should; 95% CI 30.1% to 95.4%), "
            "recall 60.0% (3 of 5 that should load it do; 95% CI 23.1% to 88.2%), F1 66.7% (95% CI 31.6% to 89.6%)"
        ),
        (
            "  returns: precision 25.0% (1 of 4 that load it should; 95% CI 4.6% to 69.9%), "
            "recall 100.0% (1 of 1 that should load it do; 95% CI 20.7% to 100.0%), F1 40.0% (95% CI 8.7% to 82.3%)"
        ),
        "  queries by the skill that they should load (rows) and the one that they loaded:",
        "             refund  returns  none",
        "    refund        3        2     0",
        "    returns       0        1     0",
        "    none          1        1     1",
    ]
