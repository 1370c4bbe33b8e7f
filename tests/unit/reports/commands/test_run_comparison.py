from __future__ import annotations

import json

from msgspec.structs import replace

from agentv.model.run.compared.run_comparison import RunComparison
from agentv.model.run.comparison import CaseKey, ComparisonSettings, RunLabel
from agentv.reports.commands.comparison_json import comparison_json
from agentv.reports.commands.run_comparison import lost_lines, render_run_comparison, run_warnings
from doubles.matrix import HOSTILE, MATRIX

FOUND = RunComparison(
    RunLabel("r-1", "/repo/r-1", ("gpt", "claude", HOSTILE), 50, 3),
    ComparisonSettings(),
    MATRIX.comparisons,
    2,
    ({CaseKey("s", "a\x1b", "plain", "claude"): "failed"}, {}, {}),
)


def test_each_comparison_is_a_sentence_with_both_rates():
    shown = render_run_comparison(FOUND)
    assert "corrected for 2 tests (Holm)" in shown
    assert (
        "targets, each compared with the first one that ran the same cases\n  claude passes more often than gpt (+29.7"
        in shown
    )
    assert "    pass rate 65.0% → 94.7%; with errors as failed or passed +25.0 to +30.0 points\n" in shown
    assert shown.endswith("compare two: agentv compare r-1 --target gpt --target claude")
    assert "\x1b" not in shown
    assert "\x1b[32mclaude passes more" in render_run_comparison(FOUND, color=True)
    assert render_run_comparison(replace(FOUND, comparisons=MATRIX.comparisons[2:])).endswith("r-1 --by prompt")


def test_what_is_missing_and_what_was_lost_is_told():
    assert list(run_warnings(FOUND)) == ["the run r-1 is incomplete: 3 planned cases did not run"]
    assert list(lost_lines(FOUND)) == [
        "1 result passed with gpt and does not with claude: s: a\\x1b with plain (failed)"
    ]


def test_a_program_gets_the_same_numbers():
    told = json.loads("".join(comparison_json(FOUND, here="/repo")))
    assert (told["run"]["results"], told["tests"], told["alpha"]) == ("r-1", 2, 0.05)
    assert [one["verdict"] for one in told["comparisons"]] == ["better", None, "inconclusive"]
    assert told["comparisons"][0]["measures"][0]["p_value"] == 0.01
    assert told["comparisons"][0]["lost"][0]["status"] == "failed"
