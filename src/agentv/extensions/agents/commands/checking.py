"""`agentv check`: whether cases tell good work from none (AGENTS.md section 8).

Each case is graded twice for an agent that does nothing, and twice for its solution. Nothing may pass, the solution
must, two grades of one work must agree, and hidden files must be out of reach.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Literal

from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.app.planning.preparation import Prepared, prepare
from agentv.app.running.evaluate import evaluate
from agentv.app.settings import EvalSettings
from agentv.errors import Diagnostic, ExitStatus
from agentv.extensions.agents.commands.substitutes import Act, CaseKey, NoAgent, SolutionAgent, substitute
from agentv.model.run.events import Event, TrialFinished
from agentv.model.run.trial import TrialResult
from agentv.model.suite.suite import Case
from agentv.model.values.message import reference_text

Problem = Literal["passes-untouched", "solution-fails", "grading-differs", "hidden-readable", "not-graded"]


class CaseProblem(Struct, frozen=True):
    """Why a case is no sound test.

    Attributes:
        case: its id.
        variant: with which it was tried; None: the suite has none.
        detail: the checks, files or grades that show it.
    """

    suite: str
    case: str
    variant: str | None
    problem: Problem
    message: str
    detail: tuple[str, ...] = ()

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
        if any(one.problem == "not-graded" for one in self.problems):
            return ExitStatus.ERRORED
        return ExitStatus.FAILED if self.problems or self.without_solution else ExitStatus.PASSED


_SAMPLES = 2


_Results = Mapping[tuple[str, str, str | None], Sequence[TrialResult]]
"""The results of one substitute, by case and variant."""


def check_cases(settings: EvalSettings, *, oracle: bool) -> CheckReport:
    """Check the cases that the settings choose.

    Args:
        settings: as for a run; its targets are not asked.
        oracle: try the solutions too.

    Raises:
        LoadError, UsageError: as for a run.
        StoreError: the results cannot be written to the temporary directory.
    """
    settings = replace(settings, repeat=_SAMPLES, until=None, cache=False, keep_workspaces="none", first_messages=True)
    agent = NoAgent({}, {})
    prepared = _prepared(settings, "nothing", agent.act)
    cases: dict[CaseKey, Case] = {(one.name, case.id): case for one, case, *_ in prepared.plan.planned_cases()}
    specs = {key: case.workspace for key, case in cases.items() if case.workspace is not None}
    agent.hidden.update((key, tuple(one.source for one in spec.hidden)) for key, spec in specs.items())
    results, interrupted = _run(prepared, cases)
    problems = [*_shown_by(results, solved=False)]
    for key, paths in agent.readable.items():
        problems.append(CaseProblem(*key, None, "hidden-readable", "the agent can read hidden files", paths))
    solvable = {key: case for key, case in cases.items() if oracle and _is_solvable(case)}
    if solvable and not interrupted:
        solutions = {key: case.solution for key, case in solvable.items() if case.solution is not None}
        answers = {key: reference_text(case.expected_output) for key, case in solvable.items() if case.expected_output}
        solved = _prepared(settings, "solution", SolutionAgent(solutions, answers).act)
        results, interrupted = _run(solved, solvable)
        problems += _shown_by(results, solved=True)
    return CheckReport(
        cases=len(cases),
        solved=len(solvable),
        problems=tuple(problems),
        without_solution=tuple(sorted(key[1] for key in cases if oracle and key not in solvable)),
        notes=prepared.notes,
        diagnostics=prepared.diagnostics,
        interrupted=interrupted,
    )


def _is_solvable(case: Case) -> bool:
    """Whether it is known what passes: a solution, or, where no files are graded, a reference answer."""
    return case.solution is not None or (case.workspace is None and bool(case.expected_output))


def _prepared(settings: EvalSettings, name: str, act: Act) -> Prepared:
    """The cases with a substitute. They run even where a case that they depend on does not pass."""
    return prepare(replace(settings, targets=(), given_target=substitute(name, act), independent=True))


def _run(prepared: Prepared, only: Container[CaseKey]) -> tuple[_Results, bool]:
    """The results of the trials of some cases, and whether Ctrl-C ended it early; nothing of the run is kept."""
    if not any(suite.links for suite in prepared.suites):  # others may wait for those left out
        chosen = frozenset(trial.key for trial in prepared.plan if (trial.suite.name, trial.case.id) in only)
        prepared = structs.replace(prepared, chosen=chosen)
    results = defaultdict[tuple[str, str, str | None], list[TrialResult]](list)

    def keep(event: Event) -> None:
        if isinstance(event, TrialFinished):
            trial = event.result.trial
            if (trial.suite.name, trial.case.id) in only:
                results[trial.suite.name, trial.case.id, trial.variant_name].append(event.result)

    with TemporaryDirectory(prefix="agentv-check-") as out:
        outcome = evaluate(structs.replace(prepared, settings=replace(prepared.settings, out=f"{out}/run")), keep)
    return results, outcome.interrupted


def _shown_by(found: _Results, *, solved: bool) -> Iterator[CaseProblem]:
    """What a substitute shows: a case must fail each time for one that does nothing, and pass each time if solved."""
    for case, results in found.items():
        errored = next((one.error for one in results if one.status == "errored"), None)
        passed = [one.status == "passed" for one in results]
        if errored is not None:
            said = f"{'the solution ' if solved else ''}cannot be graded: {errored.message} [{errored.code}]"
            yield CaseProblem(*case, "not-graded", said)
        elif solved and not any(passed):
            yield CaseProblem(*case, "solution-fails", "its solution does not pass", _failed(results[0]))
        elif not solved and any(passed):
            yield CaseProblem(*case, "passes-untouched", "passes for an agent that does nothing")
        else:
            yield from _differing(case, results, "of its solution" if solved else "of an agent that does nothing")


def _differing(case: tuple[str, str, str | None], results: Sequence[TrialResult], whose: str) -> Iterator[CaseProblem]:
    """Grades of the same work that differ."""
    if len({(one.status, one.score) for one in results}) == 1:
        return
    moved = []
    for scores in zip(*(one.scores for one in results), strict=False):
        grades = [one.grade.score for one in scores]
        if len(set(grades)) > 1:
            moved.append(f"{scores[0].entry.name}: {' and '.join(f'{one:g}' for one in grades)}")
    yield CaseProblem(*case, "grading-differs", f"two grades {whose} differ", tuple(moved))


def _failed(result: TrialResult) -> tuple[str, ...]:
    """The checks of a result that failed, with their evidence."""
    checks = (check for score in result.scores for check in score.grade.checks if not check.passed)
    return tuple(f"{one.text}: {one.evidence}" if one.evidence else one.text for one in checks)
