"""Requirements for every report, as tests that a subclass inherits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import to_builtins

from agentv.model.run.row import Row
from agentv.model.values.values import Json
from agentv.registry.types import RunData

_ROW = Row(
    test_id="greeting",
    suite="greetings",
    eval_path="evals/greetings.eval.yaml",
    target="echo",
    timestamp="2026-11-21T14:03:22Z",
    status="passed",
    score=1.0,
    output="hello <b>&\n",
    duration_ms=12.5,
    key="0",
)

ROW: Mapping[str, Json] = to_builtins(_ROW)
"""A row of a passed trial."""

ROWS: tuple[Mapping[str, Json], ...] = (
    ROW,
    {**ROW, "test_id": "farewell | ünï", "status": "failed", "score": 0.0},
    {
        **ROW,
        "test_id": "broken",
        "status": "errored",
        "score": None,
        "output": None,
        "error": {"code": "timeout", "message": "no answer after 300 s", "retryable": True},
    },
)
"""One row of each outcome."""


class ReportContract:
    """Tests of one report. Override `render`."""

    def render(self, run: RunData) -> str | Iterable[str]:
        """The report under test."""
        raise NotImplementedError("override render(): return your_report(run)")

    def test_it_writes_a_run(self) -> None:
        """Passed, failed and errored trials give some text."""
        assert self._text(ROWS).strip(), "the report is empty"

    def test_it_writes_a_run_without_trials(self) -> None:
        """A run that ended before its first trial is a run, too."""
        self._text(())

    def test_it_is_pure(self) -> None:
        """The same run gives the same text."""
        assert self._text(ROWS) == self._text(ROWS), "a second report of the same run differs"

    def _text(self, rows: Iterable[Mapping[str, Json]]) -> str:
        given = self.render(RunData("20261121T140322Z-7f3a", {"suites": []}, {"schema_version": 1}, iter(rows)))
        pieces = [given] if isinstance(given, str) else list(given)
        assert all(isinstance(one, str) for one in pieces), "a report gives text, in one piece or several"
        return "".join(pieces)
