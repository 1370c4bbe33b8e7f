"""Result of `agentv mutate`: which worse answers the checks of a run noticed."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import astuple

from agentv.errors import Diagnostic, ExitStatus


class Survivor(Struct, frozen=True, rename={"case": "test_id"}):
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


class OperatorCount(Struct, frozen=True):
    """What became of the mutants of one operator.

    Attributes:
        killed, survived: those that touch what the checks name.
        others_killed, others_survived: those that touch nothing that is named.
        errored, others_errored: those on which an assertion errored, so that there is no verdict; of both kinds.
        caught: those that a run reports as errors by itself, before any check.
        not_graded: those whose judge gave no verdict.
    """

    killed: int = 0
    survived: int = 0
    others_killed: int = 0
    others_survived: int = 0
    errored: int = 0
    others_errored: int = 0
    caught: int = 0
    not_graded: int = 0

    @property
    def total(self) -> int:
        """All mutants."""
        return sum(astuple(self))


class IdleAssertion(Struct, frozen=True):
    """An assertion that failed for no mutant. `mutants`: how many it graded."""

    suite: str
    name: str
    mutants: int


class OriginalFailure(Struct, frozen=True, rename={"case": "test_id"}):
    """A case whose original answer passed in the run and does not pass now, so that its mutants say nothing."""

    suite: str
    case: str
    message: str


class MutationReport(Struct, frozen=True):
    """What became of the mutants of a run.

    Attributes:
        answers: passing answers that were made worse.
        operators: name → counts, in the order of the catalogue.
        failing: cases that fail everything, their original too.
        idle: assertions that failed for no mutant.
        judged: number of assertions left out because a model grades them.
        unjudged: number of answers left out because a judge gave no verdict on them.
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
    unjudged: int = 0
    min_score: float | None = None
    notes: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def counts(self) -> OperatorCount:
        """The counts of all operators together."""
        return OperatorCount(*map(sum, zip(*map(astuple, self.operators.values()), strict=True)))

    @property
    def counted(self) -> int:
        """Mutants that count."""
        return self.counts.killed + self.counts.survived

    @property
    def is_partial(self) -> bool:
        """Whether mutants or answers are missing that would have been graded."""
        return bool(self.counts.not_graded or self.unjudged)

    @property
    def score(self) -> float | None:
        """Share of the mutants that count that were noticed; None: no mutant counts."""
        return self.counts.killed / self.counted if self.counted else None

    @property
    def least_score(self) -> float | None:
        """The score if every mutant on which an assertion errored had survived; None: there is no score."""
        return self.counts.killed / (self.counted + self.counts.errored) if self.counted else None

    @property
    def status(self) -> ExitStatus:
        """0 the score is high enough; 1 it is too low; 3 that is not known."""
        score, least = self.score, self.least_score
        if score is None or least is None or self.is_partial:
            return ExitStatus.ERRORED
        if self.min_score is None or least >= self.min_score:
            return ExitStatus.PASSED
        return ExitStatus.FAILED if score < self.min_score else ExitStatus.ERRORED
