"""Synchronous calls of users' functions, for reading eval files, which happens before an event loop runs."""

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
    """An event loop on its own thread, for callers whose thread may already run a loop.

    Args:
        name: name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop and return its future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Processes:
    """The processes that all files of one load share, with their event loop."""

    def __init__(self) -> None:
        self.loop = LoopThread("agentv-authoring")
        self.hosts: dict[frozenset[tuple[str, str]], JavaScriptHost] = {}
        self.workers = self.loop.start(self._workers()).result()

    async def _workers(self) -> Workers:
        return Workers()

    async def close(self) -> None:
        """End all processes."""
        await asyncio.gather(self.workers.close(), *(host.close() for host in self.hosts.values()))


_shared: list[_Processes] = []


def _processes() -> _Processes:
    if not _shared:
        _shared.append(_Processes())
    return _shared[0]


def call_blocking(call: CodeCall, timeout_s: float) -> Any:
    """Return the value of a call in the shared workers.

    Raises:
        ForeignError: the call raised, its process died, or it took longer than `timeout_s` seconds.
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
    """Return the result of `JavaScriptHost.call` in the shared process for this environment."""
    shared, key = _processes(), frozenset(env.items())
    if key not in shared.hosts:
        shared.hosts[key] = JavaScriptHost(env, patience_s=timeout_s)
    return shared.loop.start(shared.hosts[key].call(source, payload, timeout_s)).result()


def close_blocking() -> None:
    """End the shared processes, once all files are loaded."""
    while _shared:
        shared = _shared.pop()
        shared.loop.start(shared.close()).result()
        shared.loop.close()


def series_of(call: CodeCall, convert: str, arguments: Sequence[str], wait_s: float) -> Iterator[Any]:
    """Yield the items of the series that a function returns, as plain data.

    Args:
        call: the call of the function, without adapter and payload.
        convert: `package.module:name` of a function that converts an item, called with it and `arguments` in the
            worker.
        arguments: further arguments of `convert`.
        wait_s: time limit in seconds for each batch of items.

    Raises:
        ForeignError: the function raised, took too long for an item, or did not return a series.
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
