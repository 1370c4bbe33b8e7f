"""Texts to vectors: how many go into one call, and how the reply is read."""

from __future__ import annotations

import base64
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentv.model.values.response import CallFailure, Embeddings, Failure
from agentv.model.values.values import JsonObject
from agentv.targets.openai_api.replies import bad_answer, reported_error, usage_of_embeddings

MOST_TEXTS = 2048
"""Texts that OpenAI takes in one call."""

MOST_UNPACKED = 256
"""As many where vectors come as decimal numbers, so that a reply stays within what is read."""

MOST_BYTES = 300_000
"""Bytes of text in one call: OpenAI takes 300,000 tokens, and a token is a byte at least."""

_FLOAT = 4


@dataclass(frozen=True, slots=True)
class Batches:
    """The texts in portions that one call takes, in their order; a long text goes alone."""

    texts: Sequence[str]
    packed: bool

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """The portions."""
        most = MOST_TEXTS if self.packed else MOST_UNPACKED
        batch: list[str] = []
        size = 0
        for text in self.texts:
            length = len(text.encode(errors="replace"))
            if batch and (len(batch) == most or size + length > MOST_BYTES):
                yield tuple(batch)
                batch, size = [], 0
            batch.append(text)
            size += length
        if batch:
            yield tuple(batch)


def vectors_of(body: JsonObject, wanted: int) -> Embeddings | Failure:
    """The vectors in a reply, by their `index`: one for each of the `wanted` texts."""
    data = body.get("data")
    rows = [row for row in data if isinstance(row, Mapping)] if isinstance(data, list) else []
    if len(rows) != wanted:
        error: CallFailure | None = reported_error(body)
        return error or bad_answer(f"received {len(rows)} vectors for {wanted} texts")
    try:
        places: Any = {row.get("index", place): row.get("embedding") for place, row in enumerate(rows)}
        vectors = tuple(_vector(places[place]) for place in range(wanted))
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return bad_answer("the response contains vectors that cannot be read")
    if not all(vectors) or not all(math.isfinite(sum(vector)) for vector in vectors):
        return bad_answer("the response contains an empty vector or an invalid number")
    return Embeddings(vectors, usage_of_embeddings(body))


def _vector(value: Any) -> tuple[float, ...]:
    """A list of numbers, or base64 of little-endian floats.

    Raises:
        TypeError, ValueError: it is neither.
    """
    if not isinstance(value, str):
        return tuple(map(float, value))
    raw = base64.b64decode(value, validate=True)
    packed = array("f")
    if packed.itemsize != _FLOAT:  # pragma: no cover  # nowhere that Python runs
        raise ValueError("floats have another size here")
    packed.frombytes(raw)
    return tuple(packed)
