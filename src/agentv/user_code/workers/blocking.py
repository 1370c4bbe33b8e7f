"""Calls of users' functions for callers that are not asynchronous: files are read before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as LateError
from typing import Any

from msgspec.structs import replace

from agentv.model.values.response import Failure
from agentv.ports import CodeCall, Raised
from agentv.user_code.functions.guard import ForeignError
from agentv.user_code.loop_thread import LoopThread
from agentv.user_code.workers.workers import Workers

ADAPTERS = "agentv.user_code.workers.adapters"


class BlockingWorkers:
    """Workers on an event loop of their own."""

    def __init__(self) -> None:
        self._loop = LoopThread("agentv-authoring")
        self._workers = self._loop.start(_made()).result()

    def call(self, call: CodeCall, timeout_s: float) -> Any:
        """The value of a call.

        Raises:
            ForeignError: it raised, its process died, or it took longer than `timeout_s` seconds.
        """
        calling = self._loop.start(self._workers.call(call))
        try:
            found = calling.result(timeout_s)
        except LateError:
            calling.cancel()
            raise ForeignError(Failure("timeout", f"{call.what} returned nothing for {timeout_s:g} seconds")) from None
        if isinstance(found, Raised):
            raise ForeignError(found)
        return found.value

    def close(self) -> None:
        """End the workers."""
        self._loop.start(self._workers.close()).result()
        self._loop.close()


async def _made() -> Workers:
    return Workers()


_shared: list[BlockingWorkers] = []


def call_blocking(call: CodeCall, timeout_s: float) -> Any:
    """The value of a call, by workers that all files of one load share.

    Raises:
        ForeignError: as `BlockingWorkers.call`.
    """
    if not _shared:
        _shared.append(BlockingWorkers())
    return _shared[0].call(call, timeout_s)


def close_blocking() -> None:
    """End those workers: all files are loaded."""
    while _shared:
        _shared.pop().close()


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
    )
    ended = False
    while not ended:
        items, ended = call_blocking(taking, wait_s)
        yield from items
