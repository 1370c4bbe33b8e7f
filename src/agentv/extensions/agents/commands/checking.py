"""`agentv check`: check that cases can distinguish good work from no work (AGENTS.md section 8).

Each case is graded twice for an agent that does nothing, and twice for its solution. The former must fail, the latter
must pass, both grades of the same work must agree, and hidden files must be unreadable.
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
    """A reason why a case is not a sound test.

    Attributes:
        case: id of the case.
        variant: variant that it was tried with, or None.
        detail: checks, files or grades as evidence.
    """

    suite: str
    case: str
    variant: str | None
    problem: Problem
    message: str
    detail: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The id of the case, with its variant."""
        return self.case if self.variant is None else f"{self.case} ({self.variant})"


class CheckReport(Struct, frozen=True):
    """Result of `agentv check`.

    Attributes:
        cases: number of distinct cases.
        solved: number of cases whose solution was tried.
        without_solution: ids of the cases without a solution; empty unless solutions were requested.
        interrupted: whether Ctrl-C ended the check early.
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
        """Number of cases without a problem."""
        return self.cases - len({(one.suite, one.case) for one in self.problems})

    @property
    def status(self) -> ExitStatus:
        """0 if all cases are sound, 1 if some are not, 3 if some could not be graded; 130 after Ctrl-C."""
        if self.interrupted:
            return ExitStatus.INTERRUPTED
        if any(one.problem == "not-graded" for one in self.problems):
            return ExitStatus.ERRORED
        return ExitStatus.FAILED if self.problems or self.without_solution else ExitStatus.PASSED


_SAMPLES = 2


_Results = Mapping[tuple[str, str, str | None], Sequence[TrialResult]]
"""Suite, case and variant → results of one substitute."""


def check_cases(settings: EvalSettings, *, oracle: bool) -> CheckReport:
    """Check the cases that the settings select.

    Args:
        settings: as for a run; targets are not called.
        oracle: also try the solutions.

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
    problems = [*_problems_in(results, solved=False)]
    for key, paths in agent.readable.items():
        problems.append(CaseProblem(*key, None, "hidden-readable", "the agent can read hidden files", paths))
    solvable = {key: case for key, case in cases.items() if oracle and _is_solvable(case)}
    if solvable and not interrupted:
        solutions = {key: case.solution for key, case in solvable.items() if case.solution is not None}
        answers = {key: reference_text(case.expected_output) for key, case in solvable.items() if case.expected_output}
        solved = _prepared(settings, "solution", SolutionAgent(solutions, answers).act)
        results, interrupted = _run(solved, solvable)
        problems += _problems_in(results, solved=True)
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
    """Whether a case has a solution, or has a reference answer and no workspace."""
    return case.solution is not None or (case.workspace is None and bool(case.expected_output))


def _prepared(settings: EvalSettings, name: str, act: Act) -> Prepared:
    """Plan the cases with a substitute as target. Dependencies between cases are ignored."""
    return prepare(replace(settings, targets=(), given_target=substitute(name, act), independent=True))


def _run(prepared: Prepared, only: Container[CaseKey]) -> tuple[_Results, bool]:
    """Run the trials of some cases; return their results and whether Ctrl-C ended the run. No results are stored."""
    if not any(suite.links for suite in prepared.suites):  # otherwise, a trial may depend on one that was left out
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


def _problems_in(found: _Results, *, solved: bool) -> Iterator[CaseProblem]:
    """Yield the problems that results show: they must all fail for no work, and all pass for the solution."""
    for case, results in found.items():
        errored = next((one.error for one in results if one.status == "errored"), None)
        passed = [one.status == "passed" for one in results]
        if errored is not None:
            message = f"{'the solution ' if solved else ''}cannot be graded: {errored.message} [{errored.code}]"
            yield CaseProblem(*case, "not-graded", message)
        elif solved and not any(passed):
            yield CaseProblem(*case, "solution-fails", "its solution does not pass", _failed(results[0]))
        elif not solved and any(passed):
            yield CaseProblem(*case, "passes-untouched", "passes for an agent that does nothing")
        else:
            yield from _difference(case, results, "of its solution" if solved else "of an agent that does nothing")


def _difference(case: tuple[str, str, str | None], results: Sequence[TrialResult], whose: str) -> Iterator[CaseProblem]:
    """Yield a problem if grades of the same work differ."""
    if len({(one.status, one.score) for one in results}) == 1:
        return
    differing = []
    for scores in zip(*(one.scores for one in results), strict=False):
        grades = [one.grade.score for one in scores]
        if len(set(grades)) > 1:
            differing.append(f"{scores[0].entry.name}: {' and '.join(f'{one:g}' for one in grades)}")
    yield CaseProblem(*case, "grading-differs", f"two grades {whose} differ", tuple(differing))


def _failed(result: TrialResult) -> tuple[str, ...]:
    """Return the failed checks of a result, with their evidence."""
    checks = (check for score in result.scores for check in score.grade.checks if not check.passed)
    return tuple(f"{one.text}: {one.evidence}" if one.evidence else one.text for one in checks)
