"""Worker of a Ray cluster: runs trials, and sends answers and results to the driver, the process of the run.

It writes no files and reads no journal. It sends each answer before it grades the answer.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextvars import ContextVar
from functools import partial
from itertools import count
from typing import Any, Literal

from msgspec import Struct, field, structs
from msgspec.structs import replace

from agentv.app.wiring import Answers, Connections
from agentv.engine.executor import LocalExecutor
from agentv.engine.trial import AnsweredTrial, ready_to_grade
from agentv.extensions.ray.messages import (
    Job,
    LookupReply,
    Readiness,
    Received,
    Results,
    Shared,
    StoppedTarget,
    TrialAnswer,
    Unreadable,
    Wanted,
    WorkerConfig,
    WorkerMessage,
    compare_files,
    packed_results,
    unpacked,
)
from agentv.model.run.trial import TrialResult
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import Call
from agentv.user_code.guard import attempt
from agentv.user_code.processes import kill_all
from agentv.version import __version__

_MACHINE_VARS = frozenset({"HOME", "HOSTNAME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "TMPDIR", "USER"})
_PROCESS_PREFIXES = ("CUDA_", "DYLD_", "LC_", "LD_", "PYTHON", "RAY_", "VIRTUAL_ENV", "XDG_")


def is_machine_variable(name: str) -> bool:
    """Whether a variable belongs to the machine or the process, so that a worker keeps its own value."""
    return name in _MACHINE_VARS or name.startswith(_PROCESS_PREFIXES)


class _RunningJob(Struct, eq=False):
    """State of a running job.

    Attributes:
        known: answers that were sent with the job.
        outbox: messages for the driver; None marks their end.
    """

    known: Mapping[str, TargetResponse]
    outbox: asyncio.Queue[WorkerMessage | None] = field(default_factory=asyncio.Queue)


_CURRENT_JOB: ContextVar[_RunningJob] = ContextVar("agentv_running_job")


class RemoteStore:
    """Proxy of the driver's store. Implements `agentv.ports.AnswerLookup`."""

    def __init__(self, config: WorkerConfig) -> None:
        self.running_jobs: dict[_RunningJob, None] = {}
        self._looks = config.looks
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[TargetResponse | None]] = {}
        self._refused: dict[str, LookupReply] = {}

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Send an answer to the driver."""
        self._post(Received(_without_environment(call), answer))

    def stored_answer(self, call: Call) -> TargetResponse | Awaitable[TargetResponse | None] | None:
        """Return an answer that was sent with the job, else ask the driver for one."""
        known = _CURRENT_JOB.get().known.get(call.key)
        if known is not None:
            return known
        return self._ask_driver(call) if self._looks else None

    async def _ask_driver(self, call: Call) -> TargetResponse | None:
        number = next(self._numbers)
        reply: asyncio.Future[TargetResponse | None] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        self._post(Wanted(number, _without_environment(call)))
        try:
            return await reply
        finally:
            del self._waiting[number]

    def _post(self, message: WorkerMessage) -> None:
        """Send a message by the job that made the call, or by a running one if it has ended: jobs can share a call."""
        own = _CURRENT_JOB.get()
        current = own if own in self.running_jobs else next(iter(self.running_jobs), own)
        current.outbox.put_nowait(message)

    def receive_reply(self, number: int, reply: LookupReply, key: str) -> None:
        """Process a reply of the driver."""
        waiting = self._waiting.get(number)
        if reply.answer is None and (reply.no_target or reply.no_judge):
            self._refused[key] = reply
        if waiting is not None and not waiting.done():
            waiting.set_result(reply.answer)

    def refusal(self, what: Literal["no_target", "no_judge"], call: Call) -> Failure:
        """Return the Failure for a call of a target or a judge that the driver refused."""
        failure: Failure = getattr(self._refused[call.key], what)
        return failure


def _without_environment(call: Call) -> Call:
    """Return a call without its environment, to send secrets no more often than necessary."""
    return structs.replace(call, request=replace(call.request, env={}))


class Worker:
    """Runs all trials that it receives concurrently. All methods run on one event loop."""

    def __init__(self, config: WorkerConfig) -> None:
        self._store = RemoteStore(config)
        no_target = partial(self._store.refusal, "no_target") if config.no_target else None
        no_judge = partial(self._store.refusal, "no_judge") if config.no_judge else None
        self._connections = Connections(config.at_once, answers=Answers(self._store, no_target, no_judge))
        self._trials = LocalExecutor(self._connections)
        self._shared: dict[int, Shared] = {}
        self._stopped: set[int] = set()

    async def begin(self, files: Mapping[str, str], *environment: bytes) -> Readiness:
        """Check that the files that trials need exist here.

        User functions get the environment of the driver, except for variables of the machine itself.
        """
        given: dict[str, str] = pickle.loads(b"".join(environment))  # noqa: S301  # from the driver
        os.environ.update({name: value for name, value in given.items() if not is_machine_variable(name)})
        ray = sys.modules.get("ray")
        node_id = str(ray.get_runtime_context().get_node_id()) if ray is not None and ray.is_initialized() else ""
        return Readiness(socket.gethostname(), __version__, *compare_files(files), node_id=node_id)

    async def receive(self, number: int, *chunks: bytes) -> str | None:
        """Receive a suite or a target; return the error if it cannot be deserialized."""
        found = self._unpacked(b"".join(chunks))
        if isinstance(found, Failure):
            return found.message
        self._shared[number] = found
        return None

    def _unpacked(self, body: bytes) -> Any:
        """Deserialize a message; return a Failure if a module is missing here or differs."""
        return attempt(lambda packed: unpacked(packed, self._shared.__getitem__), body, "worker-unfit", "the message")

    async def run(self, body: bytes) -> AsyncIterator[bytes]:
        """Run a job. Yield each message, and the result last."""
        job = self._unpacked(body)
        if isinstance(job, Failure):
            yield pickle.dumps(Unreadable(job.message))
            return
        running = _RunningJob(job.known)
        self._store.running_jobs[running] = None
        task = asyncio.create_task(self._work(job, running))
        try:
            while (message := await running.outbox.get()) is not None:
                yield pickle.dumps(message)
            await task
        finally:
            task.cancel()
            self._store.running_jobs.pop(running, None)

    async def receive_reply(self, number: int, reply: bytes, key: str) -> None:
        """Receive the reply to a `Wanted`."""
        self._store.receive_reply(number, pickle.loads(reply), key)  # noqa: S301  # from the driver

    async def interrupt(self) -> None:
        """Make no further attempts."""
        self._trials.interrupt()

    async def close(self) -> None:
        """Close connections, and end processes and threads."""
        await self._connections.close()
        kill_all()

    async def _work(self, job: Job, running: _RunningJob) -> None:
        _CURRENT_JOB.set(running)
        try:
            outcome = await self._outcome(job)
            for message in self._stopped_targets():
                running.outbox.put_nowait(message)
            self._store.running_jobs.pop(running, None)  # no message may follow the outcome
            running.outbox.put_nowait(outcome)
        finally:
            running.outbox.put_nowait(None)

    async def _outcome(self, job: Job) -> WorkerMessage:
        if job.what == "run":
            return Results(packed_results([await self._trials.run(job.trials[0])], job.trials))
        if job.what == "compare":
            return Results(packed_results(await self._trials.compare(await self._answered(job)), job.trials))
        found = await self._trials.answer(job.trials[0])
        if isinstance(found, TrialResult):
            return Results(packed_results([found], job.trials))
        return TrialAnswer(found.answer, found.measured_ms)

    async def _answered(self, job: Job) -> list[AnsweredTrial | TrialResult]:
        return [
            given if isinstance(given, TrialResult) else await ready_to_grade(trial, self._connections, *given)
            for trial, given in zip(job.trials, job.answered, strict=True)
        ]

    def _stopped_targets(self) -> list[StoppedTarget]:
        """Return messages about targets that have stopped and were not reported yet."""
        stops = self._connections.throttle.stops
        specs = ((number, one) for number, one in self._shared.items() if isinstance(one, TargetSpec))
        found = ((number, stops.of(spec).failure) for number, spec in specs if number not in self._stopped)
        stopped = [StoppedTarget(number, failure) for number, failure in found if failure is not None]
        self._stopped.update(one.spec for one in stopped)
        return stopped
