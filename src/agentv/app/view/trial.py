"""One trial with all that its page shows."""

from __future__ import annotations

from typing import Any

from agentv.app.traces.shown import shown_work
from agentv.app.view.cases import NoSuchCaseError
from agentv.app.view.growing import GrowingRun
from agentv.reports.html.whole import whole
from agentv.reports.html.work import work_json


def whole_trial(run: GrowingRun, trial: str) -> dict[str, Any]:
    """The trial with the name that lists have for it.

    Raises:
        NoSuchCaseError: the run has none.
        StoreError: its row cannot be read.
    """
    number = int(trial) if trial.isascii() and trial.isdigit() and len(trial) < 18 else None
    result = None if number is None else run.result(number)
    if result is None:
        raise NoSuchCaseError("this run has no such trial")
    work = shown_work(run.path, result)
    return {**whole(result, run.root), **(work_json(work) if work is not None else {})}
