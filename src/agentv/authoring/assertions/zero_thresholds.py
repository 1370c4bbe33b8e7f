"""Thresholds of 0, with which every answer passes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agentv.authoring.source.nodes import MapNode, Place
from agentv.authoring.source.report import Report
from agentv.model.run.grade import reaches
from agentv.model.run.verdict import ZERO_HINT, excludes_nothing
from agentv.model.suite.assertion import AssertionEntry


class ZeroThresholds(Struct):
    """Checks the thresholds of one suite.

    Attributes:
        open: a case uses the threshold of its suite, and none of its assertions is required.
    """

    open: bool = False

    def look(self, own: float | None, entries: Sequence[AssertionEntry], at: MapNode, report: Report) -> None:
        """One more case, with the threshold of its own."""
        if own is None:
            self.open = self.open or excludes_nothing(0.0, entries)
        elif excludes_nothing(own, entries):
            message = "with threshold: 0, every answer passes this case"
            report.warning("zero-threshold", at.items["threshold"], message, hint=ZERO_HINT)

    def close(self, threshold: float | None, at: Place | None, report: Report) -> None:
        """Finish after the last case; this is the threshold of cases without their own."""
        if self.open and threshold is not None and reaches(0.0, threshold):
            message = "with threshold: 0, every answer passes"
            report.warning("zero-threshold", at, message, hint=ZERO_HINT)
