from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentv.model.run.trial import EarlyCase, EarlyStops, SamplingStop
from agentv.reports.run.plain import render_plain
from agentv.reports.run.terminal import render_terminal
from agentv.reports.run.totals import early_words
from agentv.reports.run.view import RunView
from doubles.views import LOOKS, SUMMARY


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
    summary = replace(SUMMARY, early_stops=EarlyStops(0.05, 0, 1, 12, 0, (case(),), 3))
    line = f"5 of 12 passed, undecided (fails by this share); {BOUNDS}"
    more = "and 3 more cases that failed or are undecided, in summary.json"
    assert render_plain(RunView(1), summary, **LOOKS).split("\n")[:2] == [f"SAMPLES refund: {line}", more]
    drawn = render_terminal(RunView(1), summary, color=False, width=200, **LOOKS).split("\n")
    assert drawn[0] == "Samples that ended early: cases that failed or are undecided (4)"
    assert " ".join(drawn[2].split()) == f"refund ~ {line}"
    assert drawn[3] == more
