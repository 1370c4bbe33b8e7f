import json

import pytest
from msgspec.structs import replace

from agentv.cli.listing import listed_json, listed_line, listed_totals
from agentv.model.run.runs import ListedCase, ListedTotals
from agentv.model.run.summary import GateResult, PartialRun
from agentv.reports.runs import render_runs, run_data, run_words
from doubles.listed_runs import SUMMARY, listed


def test_a_line_says_how_a_run_ended_what_it_came_to_and_what_it_took():
    heading, line, empty, total = render_runs([listed(duration_ms=61_000)], 1, width=200).split("\n")
    shown = heading.split()
    assert shown == ["RUN", "STARTED", "STATE", "CASES", "PASSED", "RATE", "95%", "CI", "COST", "TIME", "WHAT"]
    assert [cell.strip() for cell in line.split("  ") if cell] == [
        "20261121T140322Z-7f3a",
        "-",
        "finished",
        "17 of 20, 1 errored",
        "89.5% of 38 trials",
        "68.6% to 97.1%",
        "≥ $1.7500",
        "1 min 01 s",
        "refunds, orders on gpt",
    ]
    assert (empty, total) == ("", "1 run")


def test_a_partial_run_has_a_badge():
    part = listed(partial=PartialRun(1, 12, ("filter",), 1, 12), started="2026-11-21T14:03:22Z")
    of_prompts = listed(partial=PartialRun(12, 12, ("prompt",), 12, 24))
    assert "2026-11-21 14:03  finished" in render_runs([part], 1, width=200)
    assert "  1 of 12 cases  " in render_runs([part], 1, width=200)
    assert "  12 of 24 trials  " in render_runs([of_prompts], 1, width=200)
    assert run_words(part).startswith("2026-11-21 14:03, refunds, orders on gpt, 89.5% of 20 cases, only 1 of 12 cases")


def test_a_run_whose_gate_failed_says_so():
    gated = replace(SUMMARY, gates=(GateResult("judge", "refunds", False, "no label counts"),))
    assert "  17 of 20, 1 errored, gate failed  " in render_runs([listed(summary=gated)], 1, width=200)
    assert run_data(listed(summary=gated), "/")["gates"][0]["passed"] is False


def test_a_run_that_is_being_written_says_how_far_it_is():
    run = listed(state="being written", summary=None, done=12)
    assert "being written  12 of 40 trials done" in render_runs([run], 1, width=200)


@pytest.mark.parametrize(
    ("width", "gone"), [(200, set()), (137, {"TIME"}), (127, {"TIME", "COST"}), (110, {"TIME", "COST", "95% CI"})]
)
def test_in_a_narrow_terminal_columns_give_way(width, gone):
    shown = render_runs([listed(duration_ms=61_000)], 1, width=width)
    assert {name for name in ("TIME", "95% CI", "COST") if name not in shown} == gone
    assert max(map(len, shown.split("\n"))) <= width


def test_what_is_not_shown_is_said():
    assert render_runs([listed()], 31, width=200).endswith("31 runs, newest first; --limit 31 lists all")


def test_names_of_suites_are_bounded_and_cannot_steer_a_terminal():
    run = listed(suites=("a\x1b[31m", *map(str, range(10))))
    assert "a\\x1b[31m, 0, 1 and 8 more on gpt" in render_runs([run], 1, width=200)


def test_as_json_every_run_has_the_same_keys():
    whole, broken = json.loads(
        json.dumps(
            [run_data(one, "/repo") for one in (listed(), listed(state="unreadable", summary=None, problem="no"))]
        )
    )
    assert whole.keys() == broken.keys()
    assert (whole["path"], whole["cases"]["passed"], whole["pass_rate_interval"]) == ("r", 17, [0.686, 0.971])
    assert (broken["cases"], broken["problem"]) == (None, "no")


CASE = ListedCase(
    test_id="refund",
    suite="support",
    eval_path="/repo/evals/a.eval.yaml",
    place=("/repo/evals/cases.jsonl", 7),
    target="gpt",
    prompt_id=None,
    repeat=1,
    trials=1,
    judge_calls=2,
)
TOTALS = ListedTotals(cases=2, trials=3, target_calls=3, judge_calls=1, unpriced=3)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({}, "support: refund on gpt"),
        ({"prompt_id": "brief"}, "support: refund with brief on gpt"),
        ({"repeat": 3, "trials": 3}, "support: refund on gpt, 3 trials"),
        ({"repeat": 3, "trials": 1}, "support: refund on gpt, 1 trial of 3"),
        ({"test_id": "\x1b[2J\nx", "prompt_id": "\r"}, r"support: \x1b[2J\nx with \r on gpt"),
    ],
)
def test_a_line_says_what_runs(changed, line):
    assert listed_line(replace(CASE, **changed)) == line


@pytest.mark.parametrize(
    ("changed", "line", "said"),
    [
        ({}, 0, "2 cases, 3 trials: 3 calls of targets, 1 call of judges"),
        ({"script_calls": 50}, 0, "2 cases, 3 trials: 3 calls of targets, 1 call of judges, up to 50 more by scripts"),
        ({}, 1, "cost unknown: no earlier run has costs for these trials"),
        ({"cost_usd": 1.5, "unpriced": 0}, 1, "about $1.5000, from the cost of earlier runs"),
        ({"cost_usd": 1.5, "unpriced": 1}, 1, "about $1.5000, from the cost of earlier runs; unknown for 1 trial"),
        ({"cost_usd": 0.0, "unpriced": 0}, 1, "no target and no judge was called, and nothing was written"),
        ({"generators": ("cases.py:make",)}, 2, "cases.py:make ran to list its cases"),
    ],
)
def test_the_totals_say_what_it_comes_to(changed, line, said):
    assert listed_totals(replace(TOTALS, **changed))[line] == said


@pytest.mark.parametrize("number", [0, 1, 3])
def test_the_json_is_one_object_with_a_case_a_line(number):
    lines = list(listed_json([CASE] * number, TOTALS, "/repo"))
    assert len(lines) == number + 2
    found = json.loads("\n".join(lines))
    assert found["totals"]["trials"] == 3
    assert found["totals"]["cost_usd"] is None, "what is not known is never 0"
    shown = [(one["eval_path"], one["source"]) for one in found["cases"]]
    assert shown == [("evals/a.eval.yaml", "evals/cases.jsonl:7")] * number
