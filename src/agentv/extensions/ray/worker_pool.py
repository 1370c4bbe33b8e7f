"""Pool of the workers of a cluster: starts them, sends them what jobs need, and replaces lost ones."""

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
"""Seconds that all workers together get to close."""

AT_ONCE = 10_000
"""Maximum number of concurrent method calls of a worker. The driver limits the number of trials."""

CHUNK = 64_000
"""Bytes per argument of a call. Ray puts larger arguments into its object store, which may write them to disk."""


class WorkerLostError(Exception):
    """A worker died, or cannot be reached: the result of its job is lost."""


class NoWorkersError(Exception):
    """All workers are lost, and none can be started in their place."""


class UnfitError(Exception):
    """A job cannot run on any worker, because a module is missing there."""


class WorkerHandle(Struct, eq=False):
    """One worker.

    Attributes:
        actor: Ray's handle.
        busy: number of running jobs.
        lost: whether it was lost; it gets no more jobs.
        has: number of a suite or target → task that sends it, with the error if it could not be deserialized.
    """

    actor: Any
    readiness: Readiness
    busy: int = 0
    lost: bool = False
    has: dict[int, asyncio.Task[str | None]] = field(default_factory=dict)


class WorkerPool:
    """The workers of a run.

    Args:
        ray: the `ray` module, connected to a cluster.
        config: configuration that is sent to each worker.
        shared: objects that trials share.
        files: path → sha256 of files that trials need; a worker without them is not used.
        environment: environment of this process, for user functions; it is sent to workers in memory.
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
        self._dedicated: set[WorkerHandle] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._actors: list[Any] = []
        self._errors: list[str] = []
        self._closed = False

    async def open(self, number: int) -> None:
        """Start a number of workers, and wait until each has started or failed.

        Raises:
            UsageError: none started, or one has another version of agentv or lacks a file that trials need.
        """
        for _ in range(number):
            self._start_in_background()
        await asyncio.wait(self._starting)
        unfit = [worker.readiness for worker in self._workers if not _fits(worker.readiness)]
        if unfit:
            raise _unfit(unfit[0], len(unfit), len(self._workers))
        if not self._workers:
            why = self._errors[0] if self._errors else "none started"
            raise UsageError(f"no worker of the Ray cluster can be used: {why}", "`ray status` shows free resources")

    def interrupt(self) -> None:
        """Make no further attempts."""
        for worker in (*self._workers, *self._dedicated):
            if not worker.lost:
                worker.actor.interrupt.remote()

    async def _free(self, avoided: Collection[str]) -> WorkerHandle:
        """Return the least busy worker, on a node that is not avoided if possible. Wait if none has started yet."""
        while True:
            usable = [worker for worker in self._workers if _fits(worker.readiness)]
            if usable:
                return min(usable, key=lambda worker: (worker.readiness.node_id in avoided, worker.busy))
            if not self._starting:
                raise NoWorkersError(self._errors[-1] if self._errors else "they were lost")
            await asyncio.wait(self._starting, return_when=asyncio.FIRST_COMPLETED)

    @asynccontextmanager
    async def worker(self, avoided: Collection[str], *, alone: bool) -> AsyncIterator[WorkerHandle]:
        """Yield the worker for a job.

        Args:
            avoided: ids of nodes whose workers are used only if there are no others.
            alone: start a worker for this job alone, if possible, since the job was lost with other workers.

        Raises:
            NoWorkersError: all workers are lost and cannot be replaced.
        """
        worker = await self._start_worker(cpus=0) if alone else None  # without waiting for a free CPU
        if worker is not None and not _fits(worker.readiness):
            self._kill(worker.actor)
            worker = None
        if worker is None:
            yield await self._free(avoided)
            return
        self._dedicated.add(worker)
        try:
            yield worker
        finally:
            self._dedicated.discard(worker)
            self._kill(worker.actor)

    async def messages(self, worker: WorkerHandle, packed: Packed) -> AsyncGenerator[WorkerMessage, None]:
        """Run a job on a worker, and yield the worker's messages.

        Raises:
            WorkerLostError: the worker died or became unreachable.
            UnfitError: it cannot deserialize the job.
        """
        worker.busy += 1
        try:
            await self._supply(worker, packed.needs)
            async for reference in worker.actor.run.options(num_returns="streaming").remote(packed.body):
                yield pickle.loads(await reference)  # noqa: S301  # from our worker
        except self._ray.exceptions.RayTaskError:
            raise  # a bug in agentv, not a lost worker
        except self._ray.exceptions.RayError as error:
            self._replace_lost(worker)
            raise WorkerLostError(_first_line(error)) from error
        finally:
            worker.busy -= 1

    def reply(self, worker: WorkerHandle, number: int, reply: LookupReply, key: str) -> None:
        """Reply to a request of a worker."""
        worker.actor.receive_reply.remote(number, pickle.dumps(reply), key)

    async def close(self) -> None:
        """Close all workers; kill those that do not close in time."""
        self._closed = True
        for task in self._starting:
            task.cancel()
        closing = [worker.actor.close.remote() for worker in self._workers]
        with suppress(TimeoutError):  # kill those that have not closed
            async with asyncio.timeout(CLOSE_S):
                await asyncio.gather(*closing, return_exceptions=True)
        for actor in tuple(self._actors):  # `_kill` removes it from the list
            self._kill(actor)

    async def _supply(self, worker: WorkerHandle, numbers: Sequence[int]) -> None:
        """Send a worker the shared objects that a job needs, each once, after those that they need themselves."""
        for number in numbers:
            if number not in worker.has:
                worker.has[number] = asyncio.create_task(self._send(worker, number))
            problem = await asyncio.shield(worker.has[number])
            if problem is not None:
                raise UnfitError(problem)

    async def _send(self, worker: WorkerHandle, number: int) -> str | None:
        piece = self._shared.piece(number)
        await self._supply(worker, piece.needs)
        problem: str | None = await worker.actor.receive.remote(number, *_chunks(piece.body))
        return problem

    def _replace_lost(self, worker: WorkerHandle) -> None:
        """Mark a worker as lost and start another in its place."""
        if worker.lost or self._closed:
            return
        worker.lost = True
        self._kill(worker.actor)  # it may be alive but unreachable; its messages are no longer read
        if worker in self._workers:
            self._workers.remove(worker)
            self._start_in_background()

    def _start_in_background(self) -> None:
        task = asyncio.create_task(self._add_worker())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _add_worker(self) -> None:
        worker = await self._start_worker(cpus=1)
        if worker is not None:
            self._workers.append(worker)
            if not _fits(worker.readiness):
                self._errors.append(str(_unfit(worker.readiness, 1, 1)))

    async def _start_worker(self, *, cpus: int) -> WorkerHandle | None:
        """Start a worker; return None if it fails to start, and record the error."""
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
        self._kill(actor)
        return None

    def _kill(self, actor: Any) -> None:
        with suppress(Exception):  # the actor or the cluster may be gone
            self._ray.kill(actor)
        if actor in self._actors:
            self._actors.remove(actor)


def _chunks(body: bytes) -> Iterator[bytes]:
    return (body[place : place + CHUNK] for place in range(0, len(body), CHUNK))


def _fits(readiness: Readiness) -> bool:
    return readiness.version == __version__ and not readiness.missing and not readiness.other


def _unfit(found: Readiness, number: int, of: int) -> UsageError:
    """Return the error that says why a worker cannot be used, and what to do about it."""
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
