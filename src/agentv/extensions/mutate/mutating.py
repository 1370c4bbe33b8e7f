"""`agentv mutate`: make the passing answers of a run worse, and grade them again."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from msgspec import Struct, field

from agentv.app.planning.preparation import Prepared, workers_of
from agentv.app.results.stored import StoredRun, open_run
from agentv.app.stored_answers import connected, in_parallel, prepare_again, stored_answers, why_left_out
from agentv.app.wiring import Answers, Connections, redactor_for
from agentv.engine.trial import AnsweredTrial, answer_of
from agentv.errors import UsageError
from agentv.extensions.mutate.grading import (
    Mutated,
    Original,
    Proposer,
    Survival,
    TrialName,
    counts_of,
    failing_checks,
    grade,
    graders_of,
    mutated,
    name_of,
    nothing_to_mutate,
    passing_trials,
)
from agentv.extensions.mutate.mutants import Operator
from agentv.extensions.mutate.operators import OPERATORS
from agentv.extensions.mutate.reporting import IdleAssertion, MutationReport, OriginalFailure, Survivor
from agentv.model.redaction import Redactor
from agentv.model.run.trial import Trial
from agentv.model.values.formatting import plural

CASES_CHANGED = "cases whose input or target changed since the run"
UNJUDGED = "cases whose judge gave no verdict"
POOL = 100
"""Maximum number of answers of a suite that `swap-answer` chooses from."""


class MutationSettings(Struct, frozen=True):
    """Options of `agentv mutate`.

    Attributes:
        operators: names of operators; empty for all.
        min_score: minimum score to pass; None: every score passes.
        judge: whether assertions that call a model grade too.
        budget_usd: budget for judges; None: the budget of the run and its files.
        proposals: maximum number of survivors to propose a line for; None for all.
    """

    operators: tuple[str, ...] = ()
    min_score: float | None = None
    judge: bool = False
    budget_usd: float | None = None
    proposals: int | None = None


class _Collected(Struct):
    """The answers of a run to mutate, and what was left out."""

    originals: list[Original] = field(default_factory=list)
    failing: list[OriginalFailure] = field(default_factory=list)
    omitted: Counter[str] = field(default_factory=Counter)
    judged: int = 0
    comparing: int = 0
    pools: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))

    def others(self, original: Original) -> tuple[str, ...]:
        """Return answers to other cases of the suite."""
        trial = original.trial
        return tuple(output for case, output in self.pools[trial.suite.name] if case != trial.case.id)


def mutate(named: str, settings: MutationSettings) -> MutationReport:
    """Make the passing answers of a run worse, and grade them. Nothing is written to the run.

    Args:
        named: run id, directory, or `last`.
        settings: options of the command.

    Raises:
        UsageError: there is no such run or operator, or nothing to mutate.
        LoadError: an eval file of the run is wrong.
        StoreError: the files of the run cannot be read.
    """
    operators = chosen_operators(settings.operators)
    run = open_run(named, action="mutate")
    passed = passing_trials(run)
    prepared = prepare_again(run, asks_judge=settings.judge, budget_usd=settings.budget_usd)
    with stored_answers(run, prepared, judge=settings.judge) as answers:
        return asyncio.run(_mutated_run(run, prepared, answers, passed, operators, settings))


def chosen_operators(names: Sequence[str]) -> tuple[Operator, ...]:
    """Return the operators with these names, or all if there are no names.

    Raises:
        UsageError: there is no such operator.
    """
    from agentv.authoring.source.nearest import did_you_mean

    for name in names:
        if name not in OPERATORS:
            known = f"the operators are {', '.join(OPERATORS)}"
            raise UsageError(f"there is no operator '{name}'", did_you_mean(name, OPERATORS) or known)
    return tuple(one for one in OPERATORS.values() if not names or one.name in names)


async def _mutated_run(
    run: StoredRun,
    prepared: Prepared,
    answers: Answers,
    passed: Collection[TrialName],
    operators: tuple[Operator, ...],
    settings: MutationSettings,
) -> MutationReport:
    async with connected(prepared, answers) as connections:
        collected = await _collect(prepared, connections, passed, judge=settings.judge)
        if not collected.originals:
            raise _nothing_to_mutate(run, collected)
        made = await in_parallel(
            [partial(mutated, one, operators, collected.others(one), connections) for one in collected.originals],
            workers_of(prepared),
        )
        survivors = await _survivors(prepared, made, Proposer(connections), settings.proposals)
    outcomes: Counter[tuple[str, str]] = Counter()
    for one in made:
        outcomes.update(one.outcomes)
    redact = redactor_for(prepared.suites).redact
    failing = (OriginalFailure(one.suite, redact(one.case), redact(one.message)) for one in collected.failing)
    return MutationReport(
        run_id=run.run_id,
        answers=len(collected.originals),
        operators=counts_of(outcomes, operators),
        survivors=survivors,
        failing=tuple(failing),
        idle=tuple(_idle(collected, made, redact)),
        judged=collected.judged,
        unjudged=collected.omitted[UNJUDGED],
        min_score=settings.min_score,
        notes=tuple(map(redact, _notes(collected))),
        diagnostics=prepared.diagnostics,
    )


async def _survivors(
    prepared: Prepared, made: Sequence[Mutated], proposer: Proposer, most: int | None
) -> tuple[Survivor, ...]:
    """Return the survivors, counting ones first; the first `most` of these get a line (None: all of them)."""
    redactor = redactor_for(prepared.suites)
    found: list[Survivor] = []
    for one in made:
        counting = [survival for survival in one.survivors if survival.mutant.counts]
        for survival in counting:
            proposes = most is None or len(found) < most
            line = await proposer.line(survival, len(counting)) if proposes else None
            found.append(_survivor(survival, line, redactor))
    others = (survival for one in made for survival in one.survivors if not survival.mutant.counts)
    return (*found, *(_survivor(survival, None, redactor) for survival in others))


async def _collect(
    prepared: Prepared, connections: Connections, passed: Collection[TrialName], *, judge: bool
) -> _Collected:
    """Return the answers that passed and still pass, without duplicate answers to a case."""
    found = _Collected()
    trials = [trial for trial in prepared.plan if name_of(trial) in passed]
    found.omitted["cases that the eval files no longer have"] = len(passed) - len(set(map(name_of, trials)))
    calls = [partial(_original, trial, connections, judge=judge) for trial in trials]
    graded = await in_parallel(calls, workers_of(prepared))
    known: set[tuple[str, str, str | None]] = set()
    for trial, original in zip(trials, graded, strict=True):
        if isinstance(original, str):
            found.omitted[original] += 1
            continue
        key = (trial.suite.name, trial.case.id, original.answer.output)
        if key in known and not original.answer.messages:
            continue
        known.add(key)
        _add(found, original)
    return found


def _add(found: _Collected, original: Original) -> None:
    trial = original.trial
    found.judged += original.graders.judged
    found.comparing += original.graders.comparing
    if not original.graded.verdict.passed:
        checks = "; ".join(failing_checks(original.graded))
        found.failing.append(OriginalFailure(trial.suite.name, trial.case.id, checks))
        return
    found.originals.append(original)
    pool = found.pools[trial.suite.name]
    if len(pool) < POOL and original.answer.output:
        pool.append((trial.case.id, original.answer.output))


async def _original(trial: Trial, connections: Connections, *, judge: bool) -> Original | str:
    """Return the stored answer to a trial with its grades, or the kind of left-out case, for notes."""
    graders = graders_of(trial, judge=judge)
    why = why_left_out(trial) or (trial.case.workspace and "cases with a workspace") or graders.lacking
    if why is not None:
        return why
    answer = await answer_of(trial, connections)
    if not isinstance(answer, AnsweredTrial):
        is_missing = answer.error is not None and answer.error.code == "no-kept-answer"
        return CASES_CHANGED if is_missing else "cases whose stored answer cannot be graded"
    graded = await grade(trial, answer.answer, graders.entries, connections)
    return UNJUDGED if graded.lacks_judge else Original(trial, answer.answer, graders, graded)


def _nothing_to_mutate(run: StoredRun, found: _Collected) -> UsageError:
    reasons = [f"{plural(number, 'answer')} of {what}" for what, number in found.omitted.items() if number]
    if found.failing:
        passes = "passes" if len(found.failing) == 1 else "pass"
        what = plural(len(found.failing), "answer")
        reasons.insert(0, f"{what} that no longer {passes}: {found.failing[0].message}")
    why = "; ".join(reasons) or "no passing answer is stored"
    hint = "run the cases again with 'agentv eval'"
    return UsageError(f"{nothing_to_mutate(run.run_id)}: {why}", hint)


def _idle(collected: _Collected, made: Sequence[Mutated], redact: Callable[[str], str]) -> Iterator[IdleAssertion]:
    """Yield the assertions that graded mutants and failed for none."""
    graded: Counter[tuple[str, str]] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    for original, one in zip(collected.originals, made, strict=True):
        suite = original.trial.suite.name
        entries = original.graders.entries
        # no operator changes the measurements of a call
        of_calls = {entry.name for entry in entries if getattr(entry.assertion, "reads", None) == "call"}
        skipped = of_calls | {entry.name for entry in entries if entry.settings.negate}
        for name, number in one.graded.items():
            if name not in skipped:
                graded[suite, name] += number
                failed[suite, name] += one.failed[name]
    for (suite, name), number in graded.items():
        if not failed[suite, name]:
            yield IdleAssertion(suite, redact(name), number)


def _notes(found: _Collected) -> Iterator[str]:
    for what, number in found.omitted.items():
        if number:
            yield f"left out: {plural(number, 'answer')} of {what}"
    if found.judged:
        yield f"left out: {plural(found.judged, 'assertion')} that a model grades; --judge includes them"
    if found.comparing:
        what = plural(found.comparing, "assertion")
        yield f"left out: {what} that {'compares' if found.comparing == 1 else 'compare'} the answers to a case"


def _survivor(survival: Survival, line: str | None, redactor: Redactor) -> Survivor:
    """Return a survivor for the report, with the line that would fail it, unless the line contains a secret."""
    trial, redact = survival.original.trial, redactor.redact
    return Survivor(
        suite=trial.suite.name,
        case=redact(trial.case.id),
        target=trial.target.name,
        prompt_id=trial.case.prompt_id,
        variant=trial.variant_name,
        sample=trial.sample,
        operator=survival.operator,
        change=redact(survival.mutant.change),
        counts=survival.mutant.counts,
        outvoted=tuple(map(redact, survival.outvoted)),
        line=line if line is None or redact(line) == line else None,
    )
