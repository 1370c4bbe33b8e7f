"""Trials that are run by the workers of a cluster; what is kept, and in what order, stays here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from agentv.app.wiring import Connections
from agentv.engine.trial import AnsweredTrial, context_of, result_of
from agentv.extensions.ray.messages import (
    Job,
    LookupReply,
    NotSendableError,
    Received,
    Results,
    SharedObjects,
    StoppedTarget,
    TrialAnswer,
    Unreadable,
    Wanted,
    WorkerMessage,
    unpacked_results,
)
from agentv.extensions.ray.worker_pool import NoWorkersError, UnfitError, WorkerHandle, WorkerLostError, WorkerPool
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse

TRIES = 3
"""Workers that one trial may cost."""


class RayExecutor:
    """Runs trials on a worker pool, an `agentv.engine.executor.TrialExecutor`.

    A job whose worker is lost goes to another one, on another node if possible, with the answers received so far.
    The last attempt gets a worker of its own, so that a trial that kills its worker can be distinguished from trials
    that only shared it.
    """

    def __init__(self, pool: WorkerPool, shared: SharedObjects, connections: Connections) -> None:
        self._pool = pool
        self._shared = shared
        self._connections = connections

    async def run(self, trial: Trial) -> TrialResult:
        """The result of one trial."""
        found = await self._result_of_job(Job("run", (trial,)))
        return found[0] if isinstance(found, tuple) else self._errored(trial, found)

    async def answer(self, trial: Trial) -> AnsweredTrial | TrialResult:
        """The answer to a trial, or its errored result."""
        found = await self._result_of_job(Job("answer", (trial,)))
        if isinstance(found, TrialAnswer):
            context = context_of(trial, found.answer, found.measured_ms, self._connections)
            return AnsweredTrial(trial, self._connections, found.answer, found.measured_ms, context)
        return found[0] if isinstance(found, tuple) else self._errored(trial, found)

    async def compare(self, answered: Sequence[AnsweredTrial | TrialResult]) -> Sequence[TrialResult]:
        """The results of trials whose answers are compared by one worker."""
        trials = tuple(one.trial for one in answered)
        given = tuple(one if isinstance(one, TrialResult) else (one.answer, one.measured_ms) for one in answered)
        found = await self._result_of_job(Job("compare", trials, answered=given))
        return found if isinstance(found, tuple) else [self._errored(trial, found) for trial in trials]

    def interrupt(self) -> None:
        """Make no further attempts."""
        self._connections.throttle.interrupt()
        self._pool.interrupt()

    def _errored(self, trial: Trial, found: TrialAnswer | Failure) -> TrialResult:
        assert isinstance(found, Failure)  # noqa: S101  # a worker answers what it was asked
        return result_of(trial, self._connections, 0.0, None, (), error=found)

    async def _result_of_job(self, job: Job) -> tuple[TrialResult, ...] | TrialAnswer | Failure:
        """What a job came to."""
        received: dict[str, TargetResponse] = {}
        lost_on: set[str] = set()
        why = ""
        for number in range(1, TRIES + 1):
            try:
                async with self._pool.worker(lost_on, alone=number == TRIES) as worker:
                    return await self._on(worker, replace(job, known=received), received, lost_on)
            except WorkerLostError as error:
                why = str(error)
            except NoWorkersError as error:
                return Failure("worker-lost", f"no worker left: {error}")
            except (UnfitError, NotSendableError) as error:
                return Failure("worker-unfit", f"it cannot run on another machine: {error}")
        return Failure(
            "worker-lost", f"{TRIES} workers were lost while running it, the last one while running it alone: {why}"
        )

    async def _on(
        self, worker: WorkerHandle, job: Job, received: dict[str, TargetResponse], lost_on: set[str]
    ) -> tuple[TrialResult, ...] | TrialAnswer:
        """What a job came to on one worker; what it was answered meanwhile is kept, and noted in `received`."""
        try:
            async with aclosing(self._pool.messages(worker, self._shared.pack(job))) as messages:
                async for message in messages:
                    outcome = self._take(message, worker, job, received)
                    if outcome is not None:
                        return outcome
        except WorkerLostError:
            lost_on.add(worker.readiness.node_id)
            raise
        raise WorkerLostError("it ended without a message")

    def _take(
        self, message: WorkerMessage, worker: WorkerHandle, job: Job, received: dict[str, TargetResponse]
    ) -> tuple[TrialResult, ...] | TrialAnswer | None:
        """Do what a parcel asks for; what the job came to, if it says so."""
        if isinstance(message, Received):
            received[message.call.key] = message.answer
            self._connections.store.keep(message.call, message.answer)
        elif isinstance(message, Wanted):
            self._pool.tell(worker, message.number, self._reply(message), message.call.key)
        elif isinstance(message, StoppedTarget):
            spec = self._shared.thing(message.spec)
            if isinstance(spec, TargetSpec):
                self._connections.throttle.learn(spec, message.failure)
        elif isinstance(message, Unreadable):
            raise UnfitError(message.why)
        elif isinstance(message, Results):
            return unpacked_results(message.body, job.trials)
        else:
            return message
        return None

    def _reply(self, wanted: Wanted) -> LookupReply:
        """What is known here of a call."""
        recorded = self._connections.store.stored_answer(wanted.call)
        if isinstance(recorded, TargetResponse):
            return LookupReply(recorded)
        refusals = (self._connections.answers.no_target, self._connections.answers.no_judge)
        return LookupReply(None, *(refused and refused(wanted.call) for refused in refusals))
