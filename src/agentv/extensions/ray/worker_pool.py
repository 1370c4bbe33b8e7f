"""The workers of a cluster: started, given what they need, replaced where one is lost."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from msgspec import Struct, field

from agentv.errors import UsageError
from agentv.extensions.ray.messages import LookupReply, Packed, Readiness, SharedObjects, WorkerConfig, WorkerMessage
from agentv.version import __version__

START_S = 60.0
"""Seconds that a worker gets to start."""

CLOSE_S = 3.0
"""Seconds that all of them get to let go of what they hold."""

AT_ONCE = 10_000
"""Calls that one worker takes at once; how many trials there are is decided at home."""

CHUNK = 64_000
"""Bytes that Ray sends along with a call. What is larger it puts into its store, which may write it to a disk."""


class WorkerLostError(Exception):
    """A worker died, or cannot be reached: the result of its job is lost."""


class NoWorkersError(Exception):
    """All workers are lost, and none can be started in their place."""


class UnfitError(Exception):
    """A worker cannot do a job, and no other one could: a module is missing there."""


class WorkerHandle(Struct, eq=False):
    """One worker.

    Attributes:
        actor: its handle.
        busy: number of its running jobs.
        lost: it gets no further jobs.
        has: number of a suite or target → None after it arrived, or why it could not be deserialized.
    """

    actor: Any
    readiness: Readiness
    busy: int = 0
    lost: bool = False
    has: dict[int, asyncio.Task[str | None]] = field(default_factory=dict)


class WorkerPool:
    """All workers of a run.

    Args:
        ray: the module, connected.
        config: sent to each worker.
        shared: objects that trials share.
        files: path → sha256 of what trials need; a worker without them is not used.
        environment: of this process, for user functions; it is sent to workers in memory.
    """

    def __init__(
        self,
        ray: Any,
        config: WorkerConfig,
        shared: SharedObjects,
        files: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._ray = ray
        self._config = config
        self._shared = shared
        self._files = dict(files or {})
        self._environment = dict(environment or {})
        self._workers: list[WorkerHandle] = []
        self._aside: set[WorkerHandle] = set()
        self._coming: set[asyncio.Task[None]] = set()
        self._actors: list[Any] = []
        self._errors: list[str] = []
        self._closed = False

    async def open(self, number: int) -> None:
        """Start so many workers, and wait until each works or has failed to.

        Raises:
            UsageError: none works, or one lacks a file that trials need.
        """
        for _ in range(number):
            self._recruit()
        await asyncio.wait(self._coming)
        unfit = [worker.readiness for worker in self._workers if not _fits(worker.readiness)]
        if unfit:
            raise _unfit(unfit[0], len(unfit), len(self._workers))
        if not self._workers:
            why = self._errors[0] if self._errors else "none started"
            raise UsageError(f"no worker of the Ray cluster can be used: {why}", "`ray status` shows free resources")

    def interrupt(self) -> None:
        """Make no further attempts."""
        for worker in (*self._workers, *self._aside):
            if not worker.lost:
                worker.actor.interrupt.remote()

    async def _free(self, avoided: Collection[str]) -> WorkerHandle:
        """The worker with the least to do."""
        while True:
            there = [worker for worker in self._workers if _fits(worker.readiness)]
            if there:
                return min(there, key=lambda worker: (worker.readiness.node_id in avoided, worker.busy))
            if not self._coming:
                raise NoWorkersError(self._errors[-1] if self._errors else "they were lost")
            await asyncio.wait(self._coming, return_when=asyncio.FIRST_COMPLETED)

    @asynccontextmanager
    async def worker(self, avoided: Collection[str], *, alone: bool) -> AsyncIterator[WorkerHandle]:
        """The worker for a job.

        Args:
            avoided: nodes whose workers are taken only where there are no others.
            alone: other workers did not live through it, so it gets one of its own, if one starts.

        Raises:
            NoWorkersError: all workers are lost and cannot be replaced.
        """
        worker = await self._started(cpus=0) if alone else None  # it need not wait until the others leave it a place
        if worker is not None and not _fits(worker.readiness):
            self._end(worker.actor)
            worker = None
        if worker is None:
            yield await self._free(avoided)
            return
        self._aside.add(worker)
        try:
            yield worker
        finally:
            self._aside.discard(worker)
            self._end(worker.actor)

    async def messages(self, worker: WorkerHandle, packed: Packed) -> AsyncGenerator[WorkerMessage, None]:
        """Messages of a worker during a job.

        Raises:
            WorkerLostError: the worker died or became unreachable.
            UnfitError: it cannot deserialize the job.
        """
        worker.busy += 1
        try:
            await self._supply(worker, packed.needs)
            async for reference in worker.actor.run.options(num_returns="streaming").remote(packed.body):
                yield pickle.loads(await reference)  # noqa: S301  # of a process that this one started
        except self._ray.exceptions.RayTaskError:
            raise  # a bug of ours, and no loss
        except self._ray.exceptions.RayError as error:
            self._replace_lost(worker)
            raise WorkerLostError(_first_line(error)) from error
        finally:
            worker.busy -= 1

    def tell(self, worker: WorkerHandle, number: int, reply: LookupReply, key: str) -> None:
        """Reply to a request of a worker."""
        worker.actor.tell.remote(number, pickle.dumps(reply), key)

    async def close(self) -> None:
        """End all workers, in good order where they let themselves be ended so."""
        self._closed = True
        for task in self._coming:
            task.cancel()
        closing = [worker.actor.close.remote() for worker in self._workers]
        with suppress(TimeoutError):  # one that does not end by itself is ended
            async with asyncio.timeout(CLOSE_S):
                await asyncio.gather(*closing, return_exceptions=True)
        for actor in tuple(self._actors):  # ending one takes it out
            self._end(actor)

    async def _supply(self, worker: WorkerHandle, numbers: Sequence[int]) -> None:
        """Have a worker take what a job needs, each once, and what that needs before it."""
        for number in numbers:
            if number not in worker.has:
                worker.has[number] = asyncio.create_task(self._given(worker, number))
            problem = await asyncio.shield(worker.has[number])
            if problem is not None:
                raise UnfitError(problem)

    async def _given(self, worker: WorkerHandle, number: int) -> str | None:
        piece = self._shared.piece(number)
        await self._supply(worker, piece.needs)
        problem: str | None = await worker.actor.take.remote(number, *_chunks(piece.body))
        return problem

    def _replace_lost(self, worker: WorkerHandle) -> None:
        """A worker is lost: another one comes in its place."""
        if worker.lost or self._closed:
            return
        worker.lost = True
        self._end(worker.actor)  # it may live, and only be out of reach: nobody listens to it any more
        if worker in self._workers:
            self._workers.remove(worker)
            self._recruit()

    def _recruit(self) -> None:
        task = asyncio.create_task(self._joined())
        self._coming.add(task)
        task.add_done_callback(self._coming.discard)

    async def _joined(self) -> None:
        worker = await self._started(cpus=1)
        if worker is not None:
            self._workers.append(worker)
            if not _fits(worker.readiness):
                self._errors.append(str(_unfit(worker.readiness, 1, 1)))

    async def _started(self, *, cpus: int) -> WorkerHandle | None:
        """A new worker; None where it does not come up, which is noted."""
        from agentv.extensions.ray.worker import Worker

        options = {"num_cpus": cpus, "scheduling_strategy": "SPREAD", "max_concurrency": AT_ONCE}
        actor = self._ray.remote(Worker).options(**options).remote(self._config)
        self._actors.append(actor)
        try:
            async with asyncio.timeout(START_S):
                environment = _chunks(pickle.dumps(self._environment))
                return WorkerHandle(actor, await actor.begin.remote(self._files, *environment))
        except TimeoutError:
            self._errors.append(f"none started within {START_S:g} s")
        except self._ray.exceptions.RayError as error:
            self._errors.append(_first_line(error))
        self._end(actor)
        return None

    def _end(self, actor: Any) -> None:
        with suppress(Exception):  # it is gone already, or its cluster is
            self._ray.kill(actor)
        if actor in self._actors:
            self._actors.remove(actor)


def _chunks(body: bytes) -> Iterator[bytes]:
    return (body[place : place + CHUNK] for place in range(0, len(body), CHUNK))


def _fits(readiness: Readiness) -> bool:
    return readiness.version == __version__ and not readiness.missing and not readiness.other


def _unfit(found: Readiness, number: int, of: int) -> UsageError:
    """Why a worker cannot be used, and what to do about it."""
    who = f"the worker on {found.node}" + (f", as {number - 1} more of {of}," if number > 1 else "")
    if found.version != __version__:
        hint = "install the same versions on each machine"
        return UsageError(f"{who} has agentv {found.version}, and this is {__version__}", hint)
    hint = "all machines need the same files at the same paths, such as a shared checkout"
    if found.missing:
        more = f" and {len(found.missing) - 1} more" if len(found.missing) > 1 else ""
        return UsageError(f"{who} does not have {found.missing[0]}{more}, which the trials need", hint)
    more = f" and {len(found.other) - 1} more" if len(found.other) > 1 else ""
    return UsageError(f"{who} has a different version of {found.other[0]}{more} from this machine", hint)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
