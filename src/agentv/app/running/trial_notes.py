"""Notes of trials on their model calls, told once per target at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.model.run.trial import TrialResult
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line


class TrialNotes:
    """The first note of each target, and how many of its trials have one."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._trials: dict[str, int] = {}

    def add(self, result: TrialResult) -> None:
        """Add one finished trial."""
        if not result.notes:
            return
        name = result.trial.target.name
        self._first.setdefault(name, f"case '{result.trial.case.id}': {result.notes[0]}")
        self._trials[name] = self._trials.get(name, 0) + 1

    def notes(self) -> Iterator[str]:
        """`'claude', case 'a': the agent reports …; 3 more trials have notes`."""
        for name, first in self._first.items():
            more = self._trials[name] - 1
            rest = f"; {plural(more, 'more trial')} with 'notes' in the results" if more else ""
            yield f"'{one_line(name)}', {one_line(first)}{rest}"
