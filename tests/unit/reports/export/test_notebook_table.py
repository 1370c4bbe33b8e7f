"""The table that a notebook shows."""

from __future__ import annotations

import re

from agentv.reports.export.notebook_table import LONGEST, SHOWN, render_table
from doubles.trials import finished, scored, trial

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e$x$ & \"'"


def test_text_of_models_and_files_is_never_markup():
    result = finished("failed", trial=trial(HOSTILE), output=HOSTILE, scores=[scored(False, text=HOSTILE)])
    page = render_table([result], [HOSTILE])
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert {tag.split()[0] for tag in re.findall(r"</?([a-z][^>]*)>", page)} == {
        *("div", "p", "table", "thead", "tbody", "tr", "th", "td")
    }


def test_a_bounded_number_of_trials_those_that_failed_first():
    passed = [finished(trial=trial(f"good-{number}"), output="x" * 10_000) for number in range(SHOWN + 5)]
    page = render_table([*passed, finished("failed", trial=trial("bad"))], ["totals"])
    assert page.count("<tr>") == SHOWN + 1
    assert page.index("bad") < page.index("good-0")
    assert "… and 6 more" in page
    assert "x" * (LONGEST + 1) not in page
    assert "<table" not in render_table([], ["totals"])
