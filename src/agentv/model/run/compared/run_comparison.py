"""Comparison of the targets, prompts and variants of one run (`agentv compare RUN`)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from agentv.model.run.comparison import CaseKey, ComparisonSettings, Loss, Requirement, RunLabel, meets
from agentv.model.run.matrix import MatrixComparison


class RunComparison(Struct, frozen=True):
    """Comparison of the parts of one run, each with the first that has cases in common with it.

    Attributes:
        tests: number of tests that p-values and intervals are corrected for.
        lost: of each comparison the cases that passed with the base and do not with the candidate.
    """

    run: RunLabel
    question: ComparisonSettings
    comparisons: tuple[MatrixComparison, ...]
    tests: int = 1
    lost: tuple[Mapping[CaseKey, Loss], ...] = ()

    @property
    def graded(self) -> bool:
        """Whether each comparison has a verdict."""
        return all(one.verdict is not None for one in self.comparisons)

    @property
    def shown_worse(self) -> bool:
        """Whether something is shown to be worse than what it is compared with."""
        return any(one.verdict == "worse" or one.withheld == "measures" for one in self.comparisons)

    def meets(self, requirement: Requirement) -> bool:
        """Whether every verdict meets the requirement."""
        return all(meets(one.verdict, requirement) for one in self.comparisons if one.verdict is not None)
