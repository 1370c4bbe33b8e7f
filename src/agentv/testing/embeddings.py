"""The embeddings APIs of OpenAI and Gemini."""

from __future__ import annotations

import math
import re
import struct
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.testing.replies import Operation, ReplyStep
from agentv.testing.steps import Answer, ModelCall, usage_in

DIMENSIONS = 64


def vectors_of(call: ModelCall, step: ReplyStep, dimensions: object = None) -> list[tuple[float, ...]]:
    """The step's vectors, or one unit vector per text if the step has none; empty if the step is not an answer."""
    if not isinstance(step, Answer):
        return []
    if step.vectors:
        return list(step.vectors)
    size = dimensions if isinstance(dimensions, int) and dimensions > 0 else DIMENSIONS
    return [vector_of(text, size) for text in call.texts]


def vector_of(text: str, dimensions: int = DIMENSIONS) -> tuple[float, ...]:
    """A unit vector of a text's words: each adds 1 or −1 at the index of its CRC. Without words, the first axis."""
    sums = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()):
        checksum = crc32(word.encode())
        sums[checksum % dimensions] += 1.0 if checksum & 0x8000_0000 else -1.0
    length = math.hypot(*sums)
    return tuple(one / length for one in sums) if length else (1.0, *sums[1:])


def openai_vectors(call: ModelCall, step: ReplyStep, _number: int) -> JsonObject:
    """A `list` of `embedding` objects, in base64 if the call requests it, as OpenAI's SDK does."""
    vectors = vectors_of(call, step, call.body.get("dimensions"))
    data: list[JsonObject] = []
    for place, vector in enumerate(vectors):
        numbers: Json = list(vector)
        if call.body.get("encoding_format") == "base64":
            numbers = b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
        data.append({"object": "embedding", "index": place, "embedding": numbers})
    taken = (usage_in(step) or TokenUsage()).input or 0
    usage = {"prompt_tokens": taken, "total_tokens": taken}
    return {"object": "list", "data": data, "model": call.model, "usage": usage}


def gemini_vector(call: ModelCall, step: ReplyStep, number: int) -> JsonObject:
    """The JSON of `embedContent`: one `embedding`."""
    vectors: Any = gemini_vectors(call, step, number)["embeddings"]
    return {"embedding": vectors[0]} if vectors else {}


def gemini_vectors(call: ModelCall, step: ReplyStep, _number: int) -> JsonObject:
    """The JSON of `batchEmbedContents`: the `embeddings`, each with its `values`."""
    requests = call.body.get("requests")
    first = requests[0] if isinstance(requests, Sequence) and requests else call.body
    dimensions = first.get("outputDimensionality") if isinstance(first, Mapping) else None
    vectors = vectors_of(call, step, dimensions)
    return {"embeddings": [{"values": list(vector)} for vector in vectors]}


EMBED = Operation("embed", openai_vectors)
EMBED_ONE = Operation("embed", gemini_vector)
EMBED_MANY = Operation("embed", gemini_vectors)
