"""The `local` target, which computes embeddings on this machine with a model2vec model. It cannot answer prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Embeddings, Failure, TargetResponse
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Doc, Issue, NameOrDirectory, Nonempty, missing_extra
from agentv.registry.types import ProviderSettings

if TYPE_CHECKING:
    from model2vec import StaticModel


@dataclass(frozen=True, slots=True)
class Local(ProviderSettings):
    """Computes embeddings on this machine, for `similar`; it cannot answer."""

    model: Annotated[
        str,
        NameOrDirectory(),
        Nonempty(),
        Doc("a directory (starting with ./, ../ or /) that contains a model2vec model, or its name at Hugging Face"),
    ]

    short: ClassVar[str | None] = "model"
    example: ClassVar[str | None] = "./my-model"
    free: ClassVar[bool] = True
    embeds: ClassVar[bool] = True
    answers: ClassVar[bool] = False

    def validate(self) -> Iterable[Issue]:
        """Report model2vec if it is not installed."""
        missing = missing_extra("model2vec", "embeddings", "computing embeddings on this machine")
        return [missing] if missing is not None else []

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target that loads its model at the first call."""
        return LocalEmbedder(self.model, spec.name, executor)


@dataclass(slots=True)
class LocalEmbedder:
    """A connected `local` target."""

    _place: str
    _name: str
    _executor: Executor
    _loading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _model: StaticModel | Failure | None = None

    def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Return a failure, because the model only computes embeddings."""
        del request
        return Failure("bad-answer", f"'{self._name}' only computes embeddings and cannot answer")

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """Return the embeddings of the texts, at no cost. The first call loads the model."""
        try:
            async with asyncio.timeout(timeout_s):
                async with self._loading:
                    if self._model is None:
                        self._model = await self._executor.call(lambda: _loaded(self._place))
                model = self._model
                if isinstance(model, Failure):
                    return model
                return await self._executor.call(lambda: _embedded(model, texts))
        except TimeoutError:
            return Failure("timeout", f"'{self._name}' returned no embeddings within {timeout_s:g} s", retryable=True)

    async def close(self) -> None:
        """Release the model."""
        self._model = None


def _loaded(place: str) -> StaticModel | Failure:
    from agentv.user_code.guard import attempt

    def load(path: str) -> StaticModel:
        from model2vec import StaticModel

        return StaticModel.from_pretrained(path, force_download=False)

    return attempt(load, place, "cannot-load", f"the model '{place}'")


def _embedded(model: StaticModel, texts: Sequence[str]) -> Embeddings | Failure:
    from agentv.user_code.guard import attempt

    def encode(some: list[str]) -> Embeddings:
        rows = model.encode(some, use_multiprocessing=False)
        return Embeddings(tuple(tuple(float(number) for number in row) for row in rows), cost_usd=0.0)

    return attempt(encode, list(texts), "bad-answer", "the local model")
