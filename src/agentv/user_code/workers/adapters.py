"""How workers call users' functions, by name, with a context or item by item; and how these call a judge."""

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

asking: list[Callable[[str, Sequence[object]], Awaitable[Any]]] = []
"""How this worker asks the process that started it."""


@dataclass(frozen=True, slots=True)
class RemoteJudge:
    """The judge of that name; None: the trial's own."""

    name: str | None

    async def ask(self, prompt: str) -> TargetResponse:
        """Send a prompt unchanged; returns the model's answer.

        Raises:
            LookupError: there is no judge, or it gave no answer; the text says why.
        """
        row = await asking[0]("judge", (self.name, prompt))
        usage = row["token_usage"]
        return TargetResponse(
            row["output"], cost_usd=row["cost_usd"], token_usage=usage and TokenUsage.from_json(usage)
        )


@dataclass(frozen=True, slots=True)
class RemoteEmbedder:
    """The embedder of that name; None: the trial's own."""

    name: str | None

    async def embed(self, texts: Sequence[str], timeout_s: float = 60.0) -> Embeddings:
        """The vectors of the texts.

        Raises:
            LookupError: there is no embedder, or it gave none; the text says why.
        """
        vectors = await asking[0]("embed", (self.name, list(texts), timeout_s))
        return Embeddings(tuple(map(tuple, vectors)))


class RemoteServices:
    """`context.services` in a worker; its methods are for `async def` functions."""

    def judge(self, name: str | None = None) -> RemoteJudge:
        """The judge with that name, or the trial's own."""
        return RemoteJudge(name)

    def embedder(self, name: str | None = None) -> RemoteEmbedder:
        """The embedder with that name, or the trial's own."""
        return RemoteEmbedder(name)


Function = Callable[..., Any]

CONTEXT = "context"
"""Key of a payload: the wire object of an assertion's context."""


def load_module(function: Function | None, payload: Mapping[str, Any]) -> None:
    """Load a module without calling a function of it."""
    from agentv.user_code.functions import load_module as load_user_module

    del function
    load_user_module(payload["file"], payload["module"])


def by_name(function: Function, payload: Mapping[str, Any]) -> Any:
    """Call a function with those of the `offered` values that its parameters name; a lone other one gets `single`.

    A `context` beside them is offered under the names in `context_as`. A function that requires as many parameters of
    other names as `by_position` lists gets those values by position.
    """
    offered = dict(payload["offered"])
    if "context_as" in payload:
        offered.update(dict.fromkeys(payload["context_as"], context_of(payload[CONTEXT])))
    by_position = tuple(payload.get("by_position", ()))
    return _planned(function, tuple(offered), payload["single"], by_position).bind(function, offered)()


def by_position(function: Function, payload: Mapping[str, Any]) -> Any:
    """Call a function with `arguments`."""
    return function(*payload["arguments"])


def with_context(function: Function, payload: Mapping[str, Any]) -> Any:
    """Call a function with the context, behind the output where `takes_output` says so, and `parameters`."""
    context = context_of(payload[CONTEXT])
    front = (context.graded_value, context) if payload["takes_output"] else (context,)
    return function(*front, **payload["parameters"])


def context_of(wire: Mapping[str, Any]) -> Any:
    """The context of an assertion, made of its wire object."""
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
"""Items and seconds after which what a series gave so far is sent."""


def begin_series(function: Function, _payload: object) -> Any:
    """The number of the series that a function returns: a list, a generator, an async one.

    Any other value comes back as `{"lone": its type}`.
    """
    given = function()
    return _begun_later(given) if inspect.isawaitable(given) else _begun(given)


async def _begun_later(given: Awaitable[Any]) -> Any:
    return _begun(await given)


def _begun(given: Any) -> Any:
    if isinstance(given, str | bytes | Mapping) or given is None:
        return {"lone": type(given).__name__}
    number = next(_numbers)
    _series[number] = aiter(given) if hasattr(given, "__aiter__") else iter(given)
    return number


def take_series(_function: Function, payload: Mapping[str, Any]) -> Any:
    """The next items of a series, and whether it has ended: `[items, ended]`. An exception comes after what it gave.

    `convert` names a function of agentv's, `package.module:name`, that makes plain data of an item and `arguments`.
    """
    number, convert = payload["series"], named(payload["convert"])
    series, batch = _series[number], _Batch(lambda item: convert(item, *payload["arguments"]))
    if isinstance(series, AsyncIterator):
        return _taken_later(number, series, batch)
    try:
        for item in series:
            if batch.takes_last(item):
                return batch.items, False
    except BaseException as error:  # noqa: BLE001  # it is raised again
        return batch.before(number, error)
    return batch.items, True


async def _taken_later(number: int, series: AsyncIterator[Any], batch: _Batch) -> Any:
    try:
        async for item in series:
            if batch.takes_last(item):
                return batch.items, False
    except BaseException as error:  # noqa: BLE001  # it is raised again
        return batch.before(number, error)
    return batch.items, True


class _Batch:
    """Items that are sent together."""

    def __init__(self, plain: Callable[[object], Any]) -> None:
        self.items: list[Any] = []
        self._plain = plain
        self._ends_at = time.monotonic() + _BATCH_S

    def takes_last(self, item: object) -> bool:
        """Take an item; whether it is the last."""
        self.items.append(self._plain(item))
        return len(self.items) >= _BATCH or time.monotonic() > self._ends_at

    def before(self, number: int, error: BaseException) -> tuple[list[Any], bool]:
        """The items before an exception, which the series raises when it is asked for the next ones."""
        if not self.items:
            raise error
        _series[number] = _raising(error)
        return self.items, False


def _raising(error: BaseException) -> Iterator[Any]:
    yield from ()
    raise error


@lru_cache(maxsize=64)
def named(name: str) -> Callable[..., Any]:
    """The function of agentv's that `package.module:name` names."""
    found: Callable[..., Any] = resolve_name(name)
    return found
