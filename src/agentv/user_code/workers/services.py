"""What a context offers to code in a worker: the judge and embeddings, asked for over the worker's pipe."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentv.model.values.response import Embeddings, TargetResponse
from agentv.model.values.usage import TokenUsage

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
