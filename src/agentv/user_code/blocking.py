"""Calls of users' functions for callers that are not asynchronous: files are read before anything runs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from threading import Thread
from typing import Any, TypeVar

from msgspec.structs import replace

from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject
from agentv.ports import CodeCall, Raised
from agentv.user_code.guard import ForeignError
from agentv.user_code.javascript.host import JavaScriptHost
from agentv.user_code.workers.workers import Workers

T = TypeVar("T")

ADAPTERS = "agentv.user_code.workers.adapters"


class LoopThread:
    """An event loop on a thread of its own, until `close`: the caller's thread may run a loop already.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop; what it comes to."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Processes:
    """The processes of all files of one load, on an event loop of their own."""

    def __init__(self) -> None:
        self.loop = LoopThread("agentv-authoring")
        self.hosts: dict[frozenset[tuple[str, str]], JavaScriptHost] = {}
        self.workers = self.loop.start(self._workers()).result()

    async def _workers(self) -> Workers:
        return Workers()

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(self.workers.close(), *(host.close() for host in self.hosts.values()))


_shared: list[_Processes] = []


def _processes() -> _Processes:
    if not _shared:
        _shared.append(_Processes())
    return _shared[0]


def call_blocking(call: CodeCall, timeout_s: float) -> Any:
    """The value of a call, by workers that all files of one load share.

    Raises:
        ForeignError: it raised, its process died, or it took longer than `timeout_s` seconds.
    """
    shared = _processes()
    calling = shared.loop.start(shared.workers.call(call))
    try:
        found = calling.result(timeout_s)
    except LateError:
        calling.cancel()
        raise ForeignError(Failure("timeout", f"{call.what} returned nothing for {timeout_s:g} seconds")) from None
    if isinstance(found, Raised):
        raise ForeignError(found)
    return found.value


def call_javascript(source: str, payload: JsonObject, env: Mapping[str, str], timeout_s: float) -> Json | Failure:
    """What `JavaScriptHost.call` gives, by a process that all files of one load share; it may take `timeout_s`."""
    shared, key = _processes(), frozenset(env.items())
    if key not in shared.hosts:
        shared.hosts[key] = JavaScriptHost(env, patience_s=timeout_s)
    return shared.loop.start(shared.hosts[key].call(source, payload, timeout_s)).result()


def close_blocking() -> None:
    """End those processes: all files are loaded."""
    while _shared:
        shared = _shared.pop()
        shared.loop.start(shared.close()).result()
        shared.loop.close()


def series_of(call: CodeCall, convert: str, arguments: Sequence[str], wait_s: float) -> Iterator[Any]:
    """The items that a function gives one by one, as plain data.

    Args:
        call: of the function; its adapter and payload are set here.
        convert: `package.module:name` of what makes plain data of an item and `arguments`, in the worker.
        arguments: see there.
        wait_s: seconds that an item may take.

    Raises:
        ForeignError: it raised, or gave nothing for too long; or it gave no series at all.
    """
    begun = call_blocking(replace(call, adapter=f"{ADAPTERS}:begin_series", payload=None), wait_s)
    if isinstance(begun, dict):
        raise ForeignError(
            Failure(call.code, f"{call.what} must return a series of cases, not a single {begun['lone']}")
        )
    taking = replace(
        call,
        adapter=f"{ADAPTERS}:take_series",
        payload={"series": begun, "convert": convert, "arguments": arguments},
        continues=True,
    )
    ended = False
    while not ended:
        items, ended = call_blocking(taking, wait_s)
        yield from items
