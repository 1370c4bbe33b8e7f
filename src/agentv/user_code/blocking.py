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


async def _made() -> Workers:
    return Workers()


_shared: list[tuple[LoopThread, Workers]] = []
"""The workers of all files of one load, on an event loop of their own."""


def call_blocking(call: CodeCall, timeout_s: float) -> Any:
    """The value of a call, by workers that all files of one load share.

    Raises:
        ForeignError: it raised, its process died, or it took longer than `timeout_s` seconds.
    """
    if not _shared:
        made = LoopThread("agentv-authoring")
        _shared.append((made, made.start(_made()).result()))
    loop, workers = _shared[0]
    calling = loop.start(workers.call(call))
    try:
        found = calling.result(timeout_s)
    except LateError:
        calling.cancel()
        raise ForeignError(Failure("timeout", f"{call.what} returned nothing for {timeout_s:g} seconds")) from None
    if isinstance(found, Raised):
        raise ForeignError(found)
    return found.value


def close_blocking() -> None:
    """End those workers: all files are loaded."""
    while _shared:
        loop, workers = _shared.pop()
        loop.start(workers.close()).result()
        loop.close()


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


class BlockingHost:
    """A host on an event loop of its own.

    Args:
        env: of its process.
        timeout_s: seconds that each call may take.
    """

    def __init__(self, env: Mapping[str, str], timeout_s: float) -> None:
        self._host = JavaScriptHost(env, patience_s=timeout_s)
        self._timeout_s = timeout_s
        self._loop = LoopThread("agentv-authoring-javascript")

    def call(self, source: str, payload: JsonObject) -> Json | Failure:
        """What `JavaScriptHost.call` gives."""
        calling = self._host.call(source, payload, self._timeout_s)
        return self._loop.start(calling).result()

    def close(self) -> None:
        """End its process."""
        self._loop.start(self._host.close()).result()
        self._loop.close()
