"""The executor port, and the executor that runs trials in this process.

Answers of one case that are compared with each other, from all its prompts and targets, are graded together. One worker
requests all of them, one after the other, and grades them when the last has arrived. So no worker waits for another,
however few workers there are, and only the answers of running trials are held in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol, cast

from msgspec import Struct
from msgspec.structs import replace

from agentv.engine.grading import grade_entries, graded_in_time
from agentv.engine.trial import AnsweredTrial, RunContext, answer_of, is_conversation, result_of
from agentv.model.run.context import AssertionContext, ComparingAssertion
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.values.response import Failure
from agentv.work_ports import TrialWork


class TrialExecutor(Protocol):
    """Runs trials. An error in a trial becomes its errored result and is never raised.

    Answers are saved in the run's store before their results are returned.
    """

    def run(self, trial: Trial) -> Awaitable[TrialResult]:
        """Return the result of one trial."""

    async def answer(self, trial: Trial) -> AnsweredTrial | TrialResult:
        """Return a trial with its ungraded answer, or its errored result."""

    async def compare(self, answered: Sequence[AnsweredTrial | TrialResult]) -> Sequence[TrialResult]:
        """Return the results of trials whose answers are compared with each other, in their order."""

    def interrupt(self) -> None:
        """Interrupt the run: end all waits for retries and for servers."""


class LocalExecutor(Struct):
    """An executor that runs trials in this process, on its event loop."""

    run_context: RunContext

    async def run(self, trial: Trial) -> TrialResult:
        """Return the result of one trial; never raise."""
        if not trial.has_work:
            return await self._run(trial)
        work = await self.run_context.works.open(trial)
        if isinstance(work, Failure):
            return result_of(trial, self.run_context, 0.0, None, (), error=work)
        try:
            return await work.close(work.checked(await self._run(trial, work)))
        finally:
            await work.discard()

    async def _run(self, trial: Trial, work: TrialWork | None = None) -> TrialResult:
        run_context = self.run_context
        if is_conversation(trial):
            from agentv.engine.conversation import run_conversation

            return await run_conversation(trial, run_context, work)
        answered = await answer_of(trial, run_context, work)
        if isinstance(answered, TrialResult):
            return answered
        check = run_context.check(trial.suite)
        scores = await grade_entries(trial.case.assertions, answered.context, run_context.clock, check)
        return answered.result(scores)

    async def answer(self, trial: Trial) -> AnsweredTrial | TrialResult:
        """Return a trial with its answer, or its errored result."""
        if not trial.has_work:
            return await answer_of(trial, self.run_context)
        work = await self.run_context.works.open(trial)
        if isinstance(work, Failure):
            return result_of(trial, self.run_context, 0.0, None, (), error=work)
        answered: AnsweredTrial | TrialResult | None = None
        try:
            answered = await answer_of(trial, self.run_context, work)
            return await work.close(work.checked(answered)) if isinstance(answered, TrialResult) else answered
        finally:
            if not isinstance(answered, AnsweredTrial):  # otherwise `compare` closes it
                await work.discard()

    async def compare(self, answered: Sequence[AnsweredTrial | TrialResult]) -> Sequence[TrialResult]:
        """Return the results of trials whose answers are compared."""
        works = [one.work if isinstance(one, AnsweredTrial) else None for one in answered]
        try:
            results = await _graded_together(answered, self.run_context)
            pairs = zip(works, results, strict=True)
            return [one if work is None else await work.close(work.checked(one)) for work, one in pairs]
        finally:
            for work in works:
                if work is not None:
                    await work.discard()

    def interrupt(self) -> None:
        """End all waits for retries and for servers."""
        self.run_context.throttle.interrupt()


class _GivenGrade(Struct, frozen=True):
    """An assertion whose grade a comparison has already given."""

    entry: AssertionEntry
    outcome: Grade

    def label(self) -> str:
        return self.entry.assertion.label()

    def grade(self, _context: AssertionContext) -> Grade:
        return self.outcome


async def _graded_together(
    outcomes: Sequence[AnsweredTrial | TrialResult], run_context: RunContext
) -> list[TrialResult]:
    """Return the result of every trial, in their order. Trials without an answer are not compared."""
    group = [one for one in outcomes if isinstance(one, AnsweredTrial)]
    if not group:
        return [one for one in outcomes if isinstance(one, TrialResult)]
    missing = [one.trial.target.name for one in outcomes if isinstance(one, TrialResult)]
    note = f"omitted, because they gave no answer: {', '.join(dict.fromkeys(missing))}"
    contexts = [one.context for one in group]
    compared: list[dict[int, Grade]] = [{} for _ in group]
    check = run_context.check(group[0].trial.suite)
    for place, entry in enumerate(group[0].trial.case.assertions):
        if not getattr(entry.assertion, "compares", False):
            continue
        refused = check.begin(entry) if check is not None else None
        if refused is not None:
            grades: Sequence[Grade] = (Grade.errored(refused.code, refused.message),) * len(group)
        else:
            try:
                grades = await _compared(entry, contexts)
            finally:
                if check is not None:
                    check.end(entry)
        for own, grade in zip(compared, grades, strict=True):
            reason = f"{grade.reason}; {note}" if grade.reason else note
            own[place] = replace(grade, reason=reason) if missing else grade
    results = {}
    for answered, own in zip(group, compared, strict=True):
        entries = list(answered.trial.case.assertions)
        for place, grade in own.items():
            entry = entries[place]
            settings = replace(entry.settings, transform=None)
            entries[place] = replace(entry, assertion=_GivenGrade(entry, grade), settings=settings)
        check = run_context.check(answered.trial.suite)
        scores = await grade_entries(entries, answered.context, run_context.clock, check)
        kept = zip(scores, answered.trial.case.assertions, strict=True)
        results[answered.trial.key] = answered.result(tuple(replace(score, entry=entry) for score, entry in kept))
    return [one if isinstance(one, TrialResult) else results[one.trial.key] for one in outcomes]


async def _compared(entry: AssertionEntry, contexts: Sequence[AssertionContext]) -> Sequence[Grade]:
    """Return the grades of the answers that an entry compares, each transformed first."""
    from agentv.engine.transform import transformed

    transform = entry.settings.transform
    shaped = [one if transform is None else await transformed(transform, one) for one in contexts]
    whole = [one for one in shaped if isinstance(one, AssertionContext)]
    choosing = cast("ComparingAssertion", entry.assertion).choose(whole)
    found, _ = await graded_in_time(choosing, entry, contexts[0])
    if isinstance(found, Failure):
        found = (Grade.errored(found.code, found.message),) * len(whole)
    grades = iter(found)
    return [Grade.errored(one.code, one.message) if isinstance(one, Failure) else next(grades) for one in shaped]
