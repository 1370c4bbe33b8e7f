"""Result of `agentv mutate`: which worse answers the checks of a run noticed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from agentv.errors import Diagnostic, ExitStatus
from agentv.lazy_dataclass import dataclass

Outcome = Literal["killed", "survived", "not_graded"]


@dataclass(frozen=True, slots=True)
class Survivor:
    """A worse answer that still passes.

    Attributes:
        target, prompt_id, variant, sample: of the trial whose answer was made worse.
        change: what was changed, as it follows `no check noticed that`.
        counts: the change touches what the checks name, so that it is part of the score.
        outvoted: names of assertions that did fail, without failing the case.
        line: the line of YAML that fails it and passes the original, as tried; None: none was found.
    """

    suite: str
    case: str
    target: str
    prompt_id: str | None
    variant: str | None
    sample: int
    operator: str
    change: str
    counts: bool
    outvoted: tuple[str, ...] = ()
    line: str | None = None


@dataclass(frozen=True, slots=True)
class OperatorCount:
    """What became of the mutants of one operator.

    Attributes:
        killed, survived: those that touch what the checks name.
        others_killed, others_survived: those that touch nothing that is named.
        caught: those that a run reports as errors by itself, before any check.
        not_graded: those whose judge gave no verdict.
    """

    killed: int = 0
    survived: int = 0
    others_killed: int = 0
    others_survived: int = 0
    caught: int = 0
    not_graded: int = 0

    @property
    def total(self) -> int:
        """All mutants."""
        others = self.others_killed + self.others_survived
        return self.killed + self.survived + others + self.caught + self.not_graded


@dataclass(frozen=True, slots=True)
class IdleAssertion:
    """An assertion that failed for no mutant. `mutants`: how many it graded."""

    suite: str
    name: str
    mutants: int


@dataclass(frozen=True, slots=True)
class OriginalFailure:
    """A case whose original answer passed in the run and does not pass now, so that its mutants say nothing."""

    suite: str
    case: str
    message: str


@dataclass(frozen=True, slots=True)
class MutationReport:
    """What became of the mutants of a run.

    Attributes:
        answers: passing answers that were made worse.
        operators: name → counts, in the order of the catalogue.
        failing: cases that fail everything, their original too.
        idle: assertions that failed for no mutant.
        judged: number of assertions left out because a model grades them.
        min_score: least score that passes; None: every score passes.
        notes: what was left out, and why.
    """

    run_id: str
    answers: int
    operators: Mapping[str, OperatorCount]
    survivors: tuple[Survivor, ...]
    failing: tuple[OriginalFailure, ...] = ()
    idle: tuple[IdleAssertion, ...] = ()
    judged: int = 0
    min_score: float | None = None
    notes: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def killed(self) -> int:
        """Mutants that count and that a check noticed."""
        return sum(one.killed for one in self.operators.values())

    @property
    def counted(self) -> int:
        """Mutants that count."""
        return self.killed + sum(one.survived for one in self.operators.values())

    @property
    def total(self) -> int:
        """All mutants."""
        return sum(one.total for one in self.operators.values())

    @property
    def not_graded(self) -> int:
        """Mutants whose judge gave no verdict."""
        return sum(one.not_graded for one in self.operators.values())

    @property
    def score(self) -> float | None:
        """Share of the mutants that count that were noticed; None: no mutant counts."""
        return self.killed / self.counted if self.counted else None

    @property
    def status(self) -> ExitStatus:
        """0 the score is high enough; 1 it is too low; 3 there is no score, or some mutants were not graded."""
        if self.score is None or self.not_graded:
            return ExitStatus.ERRORED
        low = self.min_score is not None and self.score < self.min_score
        return ExitStatus.FAILED if low else ExitStatus.PASSED
