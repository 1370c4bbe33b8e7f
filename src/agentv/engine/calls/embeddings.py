"""Reuse of embeddings: no text is embedded twice in a run or when it is resumed."""

from __future__ import annotations

import asyncio
import struct
from array import array
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

from msgspec import Struct, field

from agentv.engine.calls.recorded_call import Unanswered, call_key
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import Message
from agentv.model.values.response import Embeddings, Failure, TargetResponse
from agentv.ports import AnswerLookup, Call, Embedder, TargetRequest

KEPT = 2_000
"""Maximum number of cached embeddings: 50 MB at 3,072 numbers each."""

_Pending = asyncio.Future[Failure | None]


class EmbeddingCache(Struct):
    """An embedder that caches the vectors of another one.

    If another call is already requesting a text, its result is awaited. A reused vector costs nothing, so that every
    token is counted in only one grade.
    """

    embedder: Embedder
    kept: int = KEPT
    _known: OrderedDict[bytes, array[float]] = field(default_factory=OrderedDict)
    _underway: dict[bytes, _Pending] = {}

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """Return the vectors of the texts, in their order."""
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
            embedded = await self._shared_result(missing, [wanted[key] for key in missing], timeout_s)
            if isinstance(embedded, Failure):
                return embedded
            found |= dict(zip(missing, embedded.vectors, strict=True))
            spent = embedded
        return Embeddings(tuple(found[_key(text)] for text in texts), spent.token_usage, spent.cost_usd)

    async def _shared_result(
        self, keys: Sequence[bytes], texts: Sequence[str], timeout_s: float
    ) -> Embeddings | Failure:
        """Embed these texts; all calls that wait for them share the result."""
        pending: _Pending = asyncio.get_running_loop().create_future()
        self._underway.update(dict.fromkeys(keys, pending))
        found: Embeddings | Failure | None = None
        try:
            found = await _embedded(self.embedder, texts, timeout_s)
        finally:  # if this call is cancelled, each waiting call makes its own
            for key in keys:
                del self._underway[key]
            if isinstance(found, Embeddings):
                for key, vector in zip(keys, found.vectors, strict=True):
                    self._known[key] = array("d", vector)
                while len(self._known) > self.kept:
                    self._known.popitem(last=False)
            pending.set_result(found if isinstance(found, Failure) else None)
        return found


class RecordedEmbedder(Struct):
    """An embedder that records its vectors, each under its own text, since batches differ from run to run.

    A recorded vector costs nothing.
    """

    embedder: Embedder
    spec: TargetSpec
    store: AnswerLookup
    unanswered: Unanswered | None = None

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """Return the vectors of the texts, in their order."""
        calls: list[Call] = []
        found: dict[int, TargetResponse] = {}
        for number, text in enumerate(texts):
            request = TargetRequest("", text, (Message("user", text),), prompt_id="embedding")
            calls.append(Call(call_key(self.spec, request), self.spec.name, request))
            recorded = self.store.stored_answer(calls[number])
            if recorded is not None and not isinstance(recorded, TargetResponse):
                recorded = await recorded
            if recorded is not None:
                found[number] = recorded
                if recorded.earlier:
                    self.store.keep(calls[number], recorded)
        missing = [number for number in range(len(texts)) if number not in found]
        if missing and self.unanswered is not None:
            return self.unanswered(calls[missing[0]])
        embedded: Embeddings | Failure = Embeddings((), cost_usd=0.0)
        if missing:
            embedded = await _embedded(self.embedder, [texts[number] for number in missing], timeout_s)
        if isinstance(embedded, Failure):
            return embedded
        fresh = dict(zip(missing, embedded.vectors, strict=True))
        usage, cost = embedded.token_usage, embedded.cost_usd  # of the whole batch, recorded with its first vector
        for number, vector in fresh.items():
            # little-endian 64-bit floats in base64: short and exact
            written = b64encode(struct.pack(f"<{len(vector)}d", *vector)).decode()
            self.store.keep(calls[number], TargetResponse(written, token_usage=usage, cost_usd=cost))
            usage, cost = None, None if cost is None else 0.0
        vectors = (fresh[number] if number in fresh else _read(found[number]) for number in range(len(texts)))
        return Embeddings(tuple(vectors), embedded.token_usage, embedded.cost_usd)


async def _embedded(embedder: Embedder, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
    """Return one vector for each text, or a Failure."""
    found = await embedder.embed(texts, timeout_s)
    if isinstance(found, Embeddings) and len(found.vectors) != len(texts):
        return Failure("bad-answer", f"received {len(found.vectors)} embeddings for {len(texts)} texts")
    return found


def _read(answer: TargetResponse) -> tuple[float, ...]:
    data = b64decode(answer.output or "")
    return struct.unpack(f"<{len(data) // 8}d", data)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
