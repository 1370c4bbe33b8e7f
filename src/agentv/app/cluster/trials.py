"""Trials that are run by the workers of a cluster; what is kept, and in what order, stays here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from agentv.app.cluster.crew import Crew, Hand, NoWorkersError, UnfitError, WorkerLostError
from agentv.app.cluster.packing import Luggage, NotSendableError, unpacked_results
from agentv.app.cluster.parcels import Answer, Job, Parcel, Received, Results, Stopped, Told, Unreadable, Wanted
from agentv.app.wiring import Answers
from agentv.engine.services import World
from agentv.engine.trial import Answered, context_of, result_of
from agentv.model.response import Failure, TargetResponse
from agentv.model.suite import TargetSpec
from agentv.model.trial import Trial, TrialResult

TRIES = 3
"""Workers that one trial may cost."""


class ClusterTrials:
    """Runs trials on a crew, a `agentv.engine.executor.TrialExecutor`.

    A job whose worker is lost is given to another one, with the answers that had arrived. The last time it gets a
    worker of its own: so a trial that kills its worker is told from those that were only near it.
    """

    def __init__(self, crew: Crew, luggage: Luggage, world: World, answers: Answers) -> None:
        self._crew = crew
        self._luggage = luggage
        self._world = world
        self._answers = answers

    async def run(self, trial: Trial) -> TrialResult:
        """The result of one trial."""
        found = await self._done(Job("run", (trial,)))
        return found[0] if isinstance(found, tuple) else self._errored(trial, found)

    async def answer(self, trial: Trial) -> Answered | TrialResult:
        """The answer to a trial; its errored result where there is none."""
        found = await self._done(Job("answer", (trial,)))
        if isinstance(found, Answer):
            context = context_of(trial, found.answer, found.measured_ms, self._world)
            return Answered(trial, self._world, found.answer, found.measured_ms, context)
        return found[0] if isinstance(found, tuple) else self._errored(trial, found)

    async def compare(self, answered: Sequence[Answered | TrialResult]) -> Sequence[TrialResult]:
        """The results of trials whose answers are compared: one worker looks at all of them."""
        trials = tuple(one.trial for one in answered)
        given = tuple(one if isinstance(one, TrialResult) else (one.answer, one.measured_ms) for one in answered)
        found = await self._done(Job("compare", trials, answered=given))
        return found if isinstance(found, tuple) else [self._errored(trial, found) for trial in trials]

    def interrupt(self) -> None:
        """Nobody waits for another attempt any more."""
        self._world.traffic.interrupt()
        self._crew.interrupt()

    def _errored(self, trial: Trial, found: Answer | Failure) -> TrialResult:
        assert isinstance(found, Failure)  # noqa: S101  # a worker answers what it was asked
        return result_of(trial, self._world, 0.0, None, (), error=found)

    async def _done(self, job: Job) -> tuple[TrialResult, ...] | Answer | Failure:
        """What a job came to."""
        received: dict[str, TargetResponse] = {}
        why = ""
        for number in range(1, TRIES + 1):
            try:
                async with self._hand(alone=number == TRIES) as hand:
                    return await self._done_by(hand, replace(job, known=received), received)
            except WorkerLostError as error:
                why = str(error)
            except NoWorkersError as error:
                return Failure("worker-lost", f"no worker is left to run it: {error}")
            except (UnfitError, NotSendableError) as error:
                return Failure("worker-unfit", f"it cannot run on another machine: {error}")
        return Failure("worker-lost", f"{TRIES} workers were lost that ran it, the last one for it alone: {why}")

    @asynccontextmanager
    async def _hand(self, *, alone: bool) -> AsyncIterator[Hand]:
        if alone:
            async with self._crew.alone() as hand:
                yield hand
        else:
            yield await self._crew.free()

    async def _done_by(
        self, hand: Hand, job: Job, received: dict[str, TargetResponse]
    ) -> tuple[TrialResult, ...] | Answer:
        """What a job came to on one worker; what it was answered meanwhile is kept, and noted in `received`."""
        async with aclosing(self._crew.parcels(hand, self._luggage.pack(job))) as parcels:
            async for parcel in parcels:
                outcome = self._take(parcel, hand, job, received)
                if outcome is not None:
                    return outcome
        raise WorkerLostError("it ended without a word")

    def _take(
        self, parcel: Parcel, hand: Hand, job: Job, received: dict[str, TargetResponse]
    ) -> tuple[TrialResult, ...] | Answer | None:
        """Do what a parcel asks for; what the job came to, if it says so."""
        if isinstance(parcel, Received):
            received[parcel.call.key] = parcel.answer
            self._answers.store.keep(parcel.call, parcel.answer)
        elif isinstance(parcel, Wanted):
            self._crew.tell(hand, parcel.number, self._told(parcel), parcel.call.key)
        elif isinstance(parcel, Stopped):
            spec = self._luggage.thing(parcel.spec)
            if isinstance(spec, TargetSpec):
                self._world.traffic.learn(spec, parcel.failure)
        elif isinstance(parcel, Unreadable):
            raise UnfitError(parcel.why)
        elif isinstance(parcel, Results):
            return unpacked_results(parcel.body, job.trials)
        else:
            return parcel
        return None

    def _told(self, wanted: Wanted) -> Told:
        """What is known here of a call."""
        kept = self._answers.store.kept(wanted.call)
        if isinstance(kept, TargetResponse):
            return Told(kept)
        refusals = (self._answers.no_target, self._answers.no_judge)
        return Told(None, *(refused and refused(wanted.call) for refused in refusals))
