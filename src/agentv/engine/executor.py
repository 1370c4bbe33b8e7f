"""The executor port, and the local executor."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from agentv.engine.grading import grade_entries
from agentv.engine.run_context import RunContext
from agentv.engine.trial import AnsweredTrial, answer_of, is_conversation, result_of
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.response import Failure


class TrialExecutor(Protocol):
    """Runs trials. An error in one is its errored result, and is never raised.

    Answers are in the run's store before their results are returned.
    """

    def run(self, trial: Trial) -> Awaitable[TrialResult]:
        """The result of one trial."""
        ...

    async def answer(self, trial: Trial) -> AnsweredTrial | TrialResult:
        """The answer to a trial, not graded yet, or its errored result."""
        ...

    async def compare(self, answered: Sequence[AnsweredTrial | TrialResult]) -> Sequence[TrialResult]:
        """The results of trials whose answers are compared with each other, in their order."""
        ...

    def interrupt(self) -> None:
        """The run is interrupted: end all waits for retries and for servers."""
        ...


class LocalExecutor:
    """Trials that run in this process, on its event loop."""

    def __init__(self, run_context: RunContext) -> None:
        self._run_context = run_context

    async def run(self, trial: Trial) -> TrialResult:
        """The result of one trial; never raises."""
        if trial.has_work:
            return await self._worked(trial)
        if is_conversation(trial):
            from agentv.engine.conversation import run_conversation

            return await run_conversation(trial, self._run_context)
        answered = await answer_of(trial, self._run_context)
        return answered if isinstance(answered, TrialResult) else await self._graded(answered)

    async def _worked(self, trial: Trial) -> TrialResult:
        """The result of a trial with a workspace or with tools, which are closed whatever happens."""
        run_context = self._run_context
        work = await run_context.works.open(trial)
        if isinstance(work, Failure):
            return result_of(trial, run_context, 0.0, None, (), error=work)
        try:
            if is_conversation(trial):
                from agentv.engine.conversation import run_conversation

                result = await run_conversation(trial, run_context, work)
            else:
                answered = await answer_of(trial, run_context, work)
                result = answered if isinstance(answered, TrialResult) else await self._graded(answered)
            return await work.close(work.judged(result))
        finally:
            await work.discard()

    async def _graded(self, answered: AnsweredTrial) -> TrialResult:
        clock, check = self._run_context.clock, self._run_context.check(answered.trial.suite)
        return answered.result(await grade_entries(answered.trial.case.assertions, answered.context, clock, check))

    async def answer(self, trial: Trial) -> AnsweredTrial | TrialResult:
        """The answer to a trial, or its errored result."""
        if not trial.has_work:
            return await answer_of(trial, self._run_context)
        work = await self._run_context.works.open(trial)
        if isinstance(work, Failure):
            return result_of(trial, self._run_context, 0.0, None, (), error=work)
        answered: AnsweredTrial | TrialResult | None = None
        try:
            answered = await answer_of(trial, self._run_context, work)
            return await work.close(work.judged(answered)) if isinstance(answered, TrialResult) else answered
        finally:
            if not isinstance(answered, AnsweredTrial):  # else it is open until it is compared
                await work.discard()

    async def compare(self, answered: Sequence[AnsweredTrial | TrialResult]) -> Sequence[TrialResult]:
        """The results of trials whose answers are compared."""
        from agentv.engine.comparison_group import graded_together

        works = [one.work if isinstance(one, AnsweredTrial) else None for one in answered]
        try:
            results = await graded_together(answered, self._run_context)
            pairs = zip(works, results, strict=True)
            return [one if work is None else await work.close(work.judged(one)) for work, one in pairs]
        finally:
            for work in works:
                if work is not None:
                    await work.discard()

    def interrupt(self) -> None:
        """End all waiting."""
        self._run_context.throttle.interrupt()
