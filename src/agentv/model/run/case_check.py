"""Result of `agentv check`: whether cases tell good work from none (AGENTS.md section 8)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from agentv.errors import Diagnostic, ExitStatus

Problem = Literal["passes-untouched", "solution-fails", "grading-differs", "hidden-readable", "not-graded"]


class CaseProblem(Struct, frozen=True):
    """Why a case is no sound test.

    Attributes:
        case: its id.
        variant: with which it was tried; None: the suite has none.
        detail: the checks, files or grades that show it.
        errored: it is not known whether the case is sound.
    """

    suite: str
    case: str
    variant: str | None
    problem: Problem
    message: str
    detail: tuple[str, ...] = ()
    errored: bool = False

    @property
    def name(self) -> str:
        """The case, with its variant."""
        return self.case if self.variant is None else f"{self.case} ({self.variant})"


class CheckReport(Struct, frozen=True):
    """What became of a check.

    Attributes:
        cases: distinct cases that were checked.
        solved: those of them whose solution was tried.
        without_solution: names of the cases that have none, where solutions were asked for.
        interrupted: Ctrl-C ended it early.
    """

    cases: int
    solved: int
    problems: tuple[CaseProblem, ...]
    without_solution: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    interrupted: bool = False

    @property
    def sound(self) -> int:
        """Cases without a problem."""
        return self.cases - len({(one.suite, one.case) for one in self.problems})

    @property
    def status(self) -> ExitStatus:
        """0 all cases are sound; 1 some are not; 3 some could not be checked."""
        if self.interrupted:
            return ExitStatus.INTERRUPTED
        if any(one.errored for one in self.problems):
            return ExitStatus.ERRORED
        return ExitStatus.FAILED if self.problems or self.without_solution else ExitStatus.PASSED
