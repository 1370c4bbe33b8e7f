"""Adapters by which workers call users' functions, and through which these call a judge or an embedder."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pkgutil import resolve_name
from typing import Any

from agentv.model.values.response import Embeddings, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.user_code.functions import CallPlan, plan_call
from agentv.user_code.guard import ForeignError

ask_parent: list[Callable[[str, Sequence[object]], Awaitable[Any]]] = []
"""The function by which this worker calls the process that started it; empty elsewhere."""


@dataclass(frozen=True, slots=True)
class RemoteJudge:
    """The judge with a name, or the trial's own if the name is None."""

    name: str | None

    async def ask(self, prompt: str) -> TargetResponse:
        """Send a prompt unchanged and return the model's answer.

        Raises:
            LookupError: there is no judge, or it returned no answer; the message says why.
        """
        row = await ask_parent[0]("judge", (self.name, prompt))
        usage = row["token_usage"]
        return TargetResponse(
            row["output"], cost_usd=row["cost_usd"], token_usage=usage and TokenUsage.from_json(usage)
        )


@dataclass(frozen=True, slots=True)
class RemoteEmbedder:
    """The embedder with a name, or the trial's own if the name is None."""

    name: str | None

    async def embed(self, texts: Sequence[str], timeout_s: float = 60.0) -> Embeddings:
        """Return the embeddings of the texts.

        Raises:
            LookupError: there is no embedder, or it returned no embeddings; the message says why.
        """
        vectors = await ask_parent[0]("embed", (self.name, list(texts), timeout_s))
        return Embeddings(tuple(map(tuple, vectors)))


class RemoteServices:
    """`context.services` in a worker, for `async def` functions."""

    def judge(self, name: str | None = None) -> RemoteJudge:
        """Return the judge with that name, or the trial's own."""
        return RemoteJudge(name)

    def embedder(self, name: str | None = None) -> RemoteEmbedder:
        """Return the embedder with that name, or the trial's own."""
        return RemoteEmbedder(name)


Function = Callable[..., Any]

CONTEXT = "context"
"""Key of the payload with the wire object of an assertion's context."""


def load_module(function: Function | None, payload: Mapping[str, Any]) -> None:
    """Load a user's module without calling a function."""
    from agentv.user_code.functions import load_module as load_user_module

    del function
    load_user_module(payload["file"], payload["module"])


def by_name(function: Function, payload: Mapping[str, Any]) -> Any:
    """Call a function with the `offered` values that its parameters name, by the rules of `plan_call`.

    The context, if the payload has one, is offered under each name in `context_as`. If the names do not match, but the
    function requires as many parameters as `by_position` lists, it gets those values by position.
    """
    offered = dict(payload["offered"])
    if "context_as" in payload:
        offered.update(dict.fromkeys(payload["context_as"], context_of(payload[CONTEXT])))
    by_position = tuple(payload.get("by_position", ()))
    return _planned(function, tuple(offered), payload["single"], by_position).bind(function, offered)()


def by_position(function: Function, payload: Mapping[str, Any]) -> Any:
    """Call a function with the `arguments` of the payload, by position."""
    return function(*payload["arguments"])


def with_context(function: Function, payload: Mapping[str, Any]) -> Any:
    """Call a function with the context and `parameters`, and with the output first if `takes_output` is set."""
    context = context_of(payload[CONTEXT])
    front = (context.graded_value, context) if payload["takes_output"] else (context,)
    return function(*front, **payload["parameters"])


def context_of(wire: Mapping[str, Any]) -> Any:
    """Return the context of an assertion from its wire object."""
    from agentv.model.run.context import context_from_wire

    return context_from_wire(wire, RemoteServices(), dict(os.environ))


@lru_cache(maxsize=1024)
def _planned(function: Function, names: tuple[str, ...], single: str, by_position: tuple[str, ...]) -> CallPlan:
    try:
        return plan_call(function, names, single)
    except ForeignError:
        if not by_position:
            raise
        given = inspect.signature(function).parameters.values()
        positional = [one for one in given if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        if sum(one.default is one.empty for one in positional) != len(by_position):
            raise
        return CallPlan(by_position, {})


_series: dict[int, Iterator[Any] | AsyncIterator[Any]] = {}
_numbers = count(1)

_BATCH, _BATCH_S = 100, 0.1
"""Number of items, and seconds, after which a batch of a series is sent."""


def begin_series(function: Function, _payload: object) -> Any:
    """Call a function and return a number for the series that it returned: an iterable or async iterable.

    For a text, bytes, mapping or None, return `{"lone": its type}` instead.
    """
    given = function()
    return _begin_async(given) if inspect.isawaitable(given) else _begin(given)


async def _begin_async(given: Awaitable[Any]) -> Any:
    return _begin(await given)


def _begin(given: Any) -> Any:
    if isinstance(given, str | bytes | Mapping) or given is None:
        return {"lone": type(given).__name__}
    number = next(_numbers)
    _series[number] = aiter(given) if hasattr(given, "__aiter__") else iter(given)
    return number


def take_series(_function: Function, payload: Mapping[str, Any]) -> Any:
    """Return the next items of a series, and whether it has ended, as `[items, ended]`.

    If the series raises, the items before that are returned first, and the next call raises. `convert` is the
    `package.module:name` of a function of agentv's that converts an item and `arguments` to plain data.
    """
    number, convert = payload["series"], named(payload["convert"])
    series, batch = _series[number], _Batch(lambda item: convert(item, *payload["arguments"]))
    if isinstance(series, AsyncIterator):
        return _take_async(number, series, batch)
    try:
        for item in series:
            if batch.add(item):
                return batch.items, False
    except BaseException as error:  # noqa: BLE001  # it is raised again
        return batch.before_error(number, error)
    return batch.items, True


async def _take_async(number: int, series: AsyncIterator[Any], batch: _Batch) -> Any:
    try:
        async for item in series:
            if batch.add(item):
                return batch.items, False
    except BaseException as error:  # noqa: BLE001  # it is raised again
        return batch.before_error(number, error)
    return batch.items, True


class _Batch:
    """Items of a series that are sent together."""

    def __init__(self, plain: Callable[[object], Any]) -> None:
        self.items: list[Any] = []
        self._plain = plain
        self._ends_at = time.monotonic() + _BATCH_S

    def add(self, item: object) -> bool:
        """Add an item. Return whether the batch is complete."""
        self.items.append(self._plain(item))
        return len(self.items) >= _BATCH or time.monotonic() > self._ends_at

    def before_error(self, number: int, error: BaseException) -> tuple[list[Any], bool]:
        """Return the items before an exception, and make the series raise it at the next call."""
        if not self.items:
            raise error
        _series[number] = _raising(error)
        return self.items, False


def _raising(error: BaseException) -> Iterator[Any]:
    yield from ()
    raise error


@lru_cache(maxsize=64)
def named(name: str) -> Callable[..., Any]:
    """Import and return the function of agentv's that `package.module:name` names."""
    found: Callable[..., Any] = resolve_name(name)
    return found
