"""What interrupted trials of agents took: model calls that the gateway counted, and rows of those that were stopped."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import msgspec
from msgspec import Struct

from agentv.model.values.usage import total_cost
from agentv.store.files.directory import HISTORY, JOURNAL
from agentv.store.files.lines import read_lines
from agentv.store.journal.answers import SpentLine, is_spent_line, verified
from agentv.store.rows.reading import is_of_interrupted, row_in


class InterruptedTrial(Struct):
    """What a trial took before it was interrupted: model calls, and US dollars, None if no price is known."""

    calls: int = 0
    cost_usd: float | None = None


def interrupted_trials(run: Path, pending: Container[str]) -> dict[str, InterruptedTrial]:
    """Key → what it took, of each trial that has no result and that an earlier process had begun.

    Args:
        run: its directory, whose rows of interrupted trials were moved to `history.jsonl`.
        pending: keys of trials without a result.
    """
    found: dict[str, InterruptedTrial] = {}
    for _, line in read_lines(run / JOURNAL):
        body = verified(line.rstrip(b"\n")) if is_spent_line(line) else None
        call = None if body is None else msgspec.json.decode(body, type=SpentLine)
        if call is not None and isinstance(call.trial, str) and call.trial in pending:
            trial = found.setdefault(call.trial, InterruptedTrial())
            trial.calls += 1
            trial.cost_usd = total_cost(trial.cost_usd, call.cost_usd)
    counted = {*found}  # a row holds the same calls
    for _, line in read_lines(run / HISTORY):
        row = row_in(line) if is_of_interrupted(line) else None
        if row is not None and row.key in pending and row.key not in counted:
            trial = found.setdefault(row.key, InterruptedTrial())
            trial.cost_usd = total_cost(trial.cost_usd, row.cost_usd)
    return found
