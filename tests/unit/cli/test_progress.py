"""The command that resumes an interrupted run, and progress in a log."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentv.cli.progress import _ProgressLines, resume_command
from agentv.model.run.events import LimitedTarget, RunProgress
from agentv.model.values.usage import BudgetUse
from agentv.reports.run.view import RunView

OUTCOME = cast(
    "Any", SimpleNamespace(run_id="r-1", directory=Path("/x/.agentv/results/r-1"), budget=None, uncounted=False)
)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("eval a --record f -j 2", "eval a -j 2"),
        ("eval a --record=f", "eval a"),
        ("eval a --replay f --replay-mode new", "eval a --replay f --replay-mode new"),
        ("eval a --resume r-1 -q", "eval a -q"),
        ("eval --resume a", "eval a"),
        ("eval a --trust-data --allow-outside -v", "eval a --trust-data --allow-outside -v"),
    ],
)
def test_it_records_nothing_anew_and_adds_what_it_added(words, said):
    assert resume_command(OUTCOME, ["/bin/agentv", *words.split()]) == f"agentv {said} --resume=r-1"


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (BudgetUse(5.0, None, 4.9, 0, used_up=True), "eval a -q --budget-usd=MORE"),
        (BudgetUse(5.0, 10, 4.9, 0, used_up=True), "eval a -q --budget-usd=MORE --budget-tokens=MORE"),
        (BudgetUse(5.0, None, 1.0, 0, used_up=False), "eval a --budget-usd 5 -q"),
    ],
)
def test_a_budget_that_is_used_up_must_grow(use, said):
    outcome = cast("Any", SimpleNamespace(**{**vars(OUTCOME), "budget": use}))
    assert resume_command(outcome, ["agentv", "eval", "a", "--budget-usd", "5", "-q"]) == f"agentv {said} --resume=r-1"


def test_options_are_added_before_the_paths_behind_two_dashes():
    assert (
        resume_command(OUTCOME, ["agentv", "eval", "-q", "--", "-a.yaml"]) == "agentv eval -q --resume=r-1 -- -a.yaml"
    )


def test_a_log_says_at_once_that_a_server_limits_calls(capsys):
    """A run of a minute with progress every second; after six seconds, a server limits it."""
    now, view = 0.0, RunView(9)
    lines = _ProgressLines(hidden=False, clock=lambda: now)
    for _ in range(65):
        now += 1
        limited = (LimitedTarget("gpt", 429, 12.0),) if now >= 6 else ()
        view.progress = RunProgress(2, now, limited, ("slow", "brief", "gpt"), now)
        lines.update(view)
    found = capsys.readouterr().err.splitlines()
    assert found[1].endswith("; gpt limits requests (429), next call in 12 s")
    assert len(found) == 7, "and after that as often as before"
