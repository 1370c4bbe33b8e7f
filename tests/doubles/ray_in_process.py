"""Ray as used by `agentv.extensions.ray`, in this process: actors are objects, and the test decides when one dies."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from agentv.extensions.ray.messages import Readiness

Kills = Callable[[int, Any], bool]
"""Function that decides whether an actor, by its number from 0, dies instead of delivering a parcel."""


class RayError(Exception):
    """The error of calls to a dead actor."""


class RayTaskError(RayError):
    """An exception raised by a method of an actor."""


class RayInProcess:
    """Stands in for the module `ray`.

    Attributes:
        actors: all started actors, in order.
        exceptions: like `ray.exceptions`.

    Args:
        kills: decides which parcels kill an actor.
        starts: most actors that can be started; None for no limit.
    """

    def __init__(self, kills: Kills = lambda _number, _parcel: False, starts: int | None = None) -> None:
        self.exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
        self.actors: list[Actor] = []
        self.kills = kills
        self._starts = starts

    def remote(self, made: Callable[..., Any]) -> RayInProcess._Class:
        return self._Class(self, made)

    def kill(self, actor: Actor) -> None:
        actor.died.set()

    class _Class:
        def __init__(self, ray: RayInProcess, made: Callable[..., Any]) -> None:
            self._ray = ray
            self._made = made

        def options(self, **_options: object) -> RayInProcess._Class:
            return self

        def remote(self, *arguments: object) -> Actor:
            ray = self._ray
            actor = Actor(ray, len(ray.actors), self._made(*arguments))
            ray.actors.append(actor)
            if ray._starts is not None and len(ray.actors) > ray._starts:
                actor.died.set()
            return actor


class Actor:
    def __init__(self, ray: RayInProcess, number: int, behind: Any) -> None:
        self.number = number
        self.behind = behind
        self.node = "node-0"
        self.died = asyncio.Event()
        self.ray = ray

    def __getattr__(self, name: str) -> Method:
        return Method(self, name)


class Method:
    def __init__(self, actor: Actor, name: str) -> None:
        self._actor = actor
        self._name = name

    def options(self, **_options: object) -> Method:
        return self

    def remote(self, *arguments: object) -> Any:
        if self._name == "run":
            return self._stream(*arguments)
        return asyncio.ensure_future(self._value(*arguments))

    async def _value(self, *arguments: object) -> Any:
        if self._actor.died.is_set():
            raise RayError(f"actor {self._actor.number} died")
        found = await self._unless_dead(getattr(self._actor.behind, self._name)(*arguments))
        return replace(found, node_id=self._actor.node) if isinstance(found, Readiness) else found

    async def _stream(self, *arguments: object) -> AsyncIterator[Awaitable[bytes]]:
        actor = self._actor
        sent = actor.behind.run(*arguments)
        while True:
            try:
                body = await self._unless_dead(anext(sent))
            except StopAsyncIteration:
                return
            if actor.ray.kills(actor.number, pickle.loads(body)):
                actor.died.set()
                raise RayError(f"actor {actor.number} died")
            yield _ready(body)

    async def _unless_dead(self, given: Awaitable[Any]) -> Any:
        actor = self._actor
        task = asyncio.ensure_future(given)
        death = asyncio.ensure_future(actor.died.wait())
        await asyncio.wait({task, death}, return_when=asyncio.FIRST_COMPLETED)
        died = actor.died.is_set()
        death.cancel()
        if died and not task.done():
            task.cancel()
            raise RayError(f"actor {actor.number} died")
        return task.result()


def _ready(body: bytes) -> Awaitable[bytes]:
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    future.set_result(body)
    return future
