"""What would run, as people and programs see it."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from agentv.model.run.listing import ListedCase, ListedTotals
from agentv.reports.commands.listing import listed_json, listed_line, listed_totals

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
    assert [(one["eval_path"], one["source"]) for one in found["cases"]] == [
        ("evals/a.eval.yaml", "evals/cases.jsonl:7")
    ] * number
