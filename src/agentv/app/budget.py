"""The budget of a run: what it may spend, and what to say of that in the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.app.preparation import Prepared, budget_of
from agentv.model.summary import Summary
from agentv.reports.text import one_line
from agentv.reports.totals import money, plural
from agentv.store.directory import JOURNAL

if TYPE_CHECKING:
    from agentv.engine.purse import Purse


def purse_of(prepared: Prepared, run: Path) -> Purse | None:
    """What the calls of a run may spend, less what its earlier processes did; None: there is no budget.

    Raises:
        StoreError: the journal of the run that is gone on with cannot be read.
    """
    usd, tokens = budget_of(prepared)
    if usd is None and tokens is None:
        return None
    from agentv.engine.budget import Budget
    from agentv.engine.purse import Purse
    from agentv.store.spent import spent_in

    if prepared.settings.goes_on_with is None:
        return Purse(Budget(usd, tokens))
    before = spent_in(run / JOURNAL)
    return Purse(Budget(usd, tokens, before.total), before.largest)


def notes_on(purse: Purse | None, summary: Summary) -> Iterator[str]:
    """What people should know: what was spent, what was not run for want of more, and what could not be counted."""
    if purse is None:
        return
    use, parts = purse.use(), []
    if use.usd is not None:
        parts.append(f"{money(use.spent_usd)} of {money(use.usd)}")
    if use.tokens is not None:
        parts.append(f"{use.spent_tokens:,} of {use.tokens:,} tokens")
    said = f"budget: {' and '.join(parts)} spent"
    if use.used_up:
        trials = summary.trials
        run = f"{trials.total - trials.skipped:,} of {plural(trials.total, 'trial')} run"
        said += f"; {run}, {trials.skipped:,} not run"
    yield said
    for name, what in purse.silent():
        word = "what its calls cost" if what == "usd" else "how many tokens its calls take"
        yield f"'{one_line(name)}' does not say {word}: the budget counts them as nothing"
