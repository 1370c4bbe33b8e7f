"""Targets with a price of their own: it decides the cost of every call whose tokens are known."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from agentv.model.values.price import Price
from agentv.model.values.response import Embeddings, Failure, TargetResponse
from agentv.ports import Embedder, Target, TargetRequest

A = TypeVar("A", TargetResponse, Embeddings)


def priced(target: Target, price: Price | None) -> Target:
    """The target, with its calls at this price; unchanged without one."""
    if price is None:
        return target
    return PricedEmbedder(target, price) if isinstance(target, Embedder) else PricedTarget(target, price)


class PricedTarget:
    """A target whose calls have a price."""

    def __init__(self, target: Target, price: Price) -> None:
        self._target = target
        self._price = price

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """The target's answer, with its cost."""
        given = self._target.answer(request)
        return self._with_cost(await given if isinstance(given, Awaitable) else given)

    def _with_cost(self, found: A | Failure) -> A | Failure:
        cost = None if isinstance(found, Failure) else self._price.cost(found.token_usage)
        return found if isinstance(found, Failure) or cost is None else replace(found, cost_usd=cost)

    async def close(self) -> None:
        """Close the target."""
        await self._target.close()


class PricedEmbedder(PricedTarget):
    """A target with a price that also turns texts into vectors."""

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """The vectors, with their cost."""
        assert isinstance(self._target, Embedder)  # noqa: S101  # it was when this was made
        return self._with_cost(await self._target.embed(texts, timeout_s))
