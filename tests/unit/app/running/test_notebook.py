"""Progress in a cell of a notebook."""

from __future__ import annotations

from agentv.app.running.notebook import EVERY_S, CellProgress
from agentv.model.run.events import RunStarted, TrialFinished
from doubles.trials import finished


class Cell:
    """The output of a cell: what it shows, and how often that changed."""

    def __init__(self) -> None:
        self.shown = []

    def display(self, data):
        self.shown.append(data["text/plain"])
        return self

    def update(self, data, *, raw):
        assert raw
        self.shown[-1] = data["text/plain"]
        self.changes = getattr(self, "changes", 0) + 1


def test_a_thousand_trials_are_one_line_that_changes_a_few_times():
    cell, time = Cell(), [0.0]
    progress = CellProgress(cell.display, lambda: time[0])
    progress.draw()
    assert cell.shown == []
    progress.add(RunStarted("run", 1000, 4))
    result = finished()
    for _ in range(1000):
        time[0] += EVERY_S / 100
        progress.add(TrialFinished(result))
        progress.draw()
    progress.draw(now=True)
    assert cell.shown == ["1000/1000 trials: 1000 passed, 0 failed, 0 errored"]
    assert cell.changes <= 12
    progress.draw(now=True)
    assert cell.changes <= 12
