"""Texts that were embedded once in a run are not embedded again."""

from __future__ import annotations

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

from agentv.model.response import Embeddings, Failure
from agentv.ports import Embedder

KEPT = 2_000
"""Embeddings that are remembered: at 3,072 numbers each, 50 MB."""

_Pending = asyncio.Future[Failure | None]


class Remembering:
    """An embedder that asks another one for what it does not know yet.

    Texts that another call is just asking for are waited for. What was not asked for anew costs nothing, so that every
    token stands in one grade.
    """

    def __init__(self, embedder: Embedder, *, kept: int = KEPT) -> None:
        self._embedder = embedder
        self._kept = kept
        self._known: OrderedDict[bytes, array[float]] = OrderedDict()
        self._underway: dict[bytes, _Pending] = {}

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """The vectors of the texts, in their order."""
        wanted = {_key(text): text for text in texts}
        while pending := {self._underway[key] for key in wanted if key in self._underway}:
            await asyncio.wait(pending)
            failed = next((failure for one in pending if (failure := one.result()) is not None), None)
            if failed is not None:
                return failed
        found = {key: tuple(self._known[key]) for key in wanted if key in self._known}
        for key in found:
            self._known.move_to_end(key)
        missing = [key for key in wanted if key not in found]
        spent = Embeddings((), cost_usd=0.0)
        if missing:
            asked = await self._asked(missing, [wanted[key] for key in missing], timeout_s)
            if isinstance(asked, Failure):
                return asked
            if len(asked.vectors) != len(missing):
                return Failure("bad-answer", f"{len(asked.vectors)} embeddings came back for {len(missing)} texts")
            found |= dict(zip(missing, asked.vectors, strict=True))
            spent = asked
        return Embeddings(tuple(found[_key(text)] for text in texts), spent.token_usage, spent.cost_usd)

    async def _asked(self, keys: Sequence[bytes], texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """What the other one says; whoever waits for these texts is told how it ended."""
        pending: _Pending = asyncio.get_running_loop().create_future()
        self._underway.update(dict.fromkeys(keys, pending))
        found: Embeddings | Failure | None = None
        try:
            found = await self._embedder.embed(texts, timeout_s)
        finally:  # a call that was given up tells nothing: whoever waits asks on its own
            for key in keys:
                del self._underway[key]
            if isinstance(found, Embeddings) and len(found.vectors) == len(keys):
                self._remember(keys, found)
            pending.set_result(found if isinstance(found, Failure) else None)
        return found

    def _remember(self, keys: Sequence[bytes], found: Embeddings) -> None:
        for key, vector in zip(keys, found.vectors, strict=True):
            self._known[key] = array("d", vector)
        while len(self._known) > self._kept:
            self._known.popitem(last=False)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
