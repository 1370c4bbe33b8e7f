"""The line that goes on with an interrupted run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentv.cli.progress import resuming

OUTCOME = cast("Any", SimpleNamespace(run_id="r-1", directory=Path("/x/.agentv/results/r-1")))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("eval a --record f --record-code -j 2", "eval a -j 2"),
        ("eval a --record-code --record=f", "eval a"),
        ("eval a --replay f --replay-mode new --record-code", "eval a --replay f --replay-mode new --record-code"),
        ("eval a --resume r-1 -q", "eval a -q"),
        ("eval --resume a", "eval a"),
    ],
)
def test_it_records_nothing_anew_and_adds_what_it_added(words, said):
    assert resuming(OUTCOME, ["/bin/agentv", *words.split()]) == f"agentv {said} --resume=r-1"
