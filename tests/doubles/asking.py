"""Helpers that call a target in a test: requests with defaults, and a target that is connected, called and closed."""

import asyncio
import inspect
import os
from collections.abc import Callable
from typing import Any

from agentv.model.suite.suite import Retry, TargetSpec
from agentv.model.values.message import Message
from agentv.model.values.response import Embeddings, Failure, TargetResponse
from agentv.ports import Embedder, TargetRequest
from agentv.registry.fields import options_of
from agentv.registry.types import ProviderSettings
from agentv.testing import ModelCall, ModelServer
from agentv.user_code.threads import DaemonThreads


def request(prompt: str = "hello", case_id: str = "case", **others: Any) -> TargetRequest:
    messages = others.pop("messages", (Message("user", prompt),))
    env = {"PATH": os.environ["PATH"], **others.pop("env", {})}
    return TargetRequest(case_id, prompt, messages, **{"timeout_s": 10.0, "env": env, **others})


def spec_of(settings: ProviderSettings, **others: Any) -> TargetSpec:
    return TargetSpec("target", "provider", settings, **{"retry": Retry(), **others})


async def call_target(target: Any, one: TargetRequest) -> TargetResponse | Failure:
    answer = target.answer(one)
    return await answer if inspect.isawaitable(answer) else answer


def answers(settings: ProviderSettings, *requests: TargetRequest, **spec: Any) -> list[TargetResponse | Failure]:
    """Return a target's answers to concurrent requests."""

    async def ask() -> list[TargetResponse | Failure]:
        executor = DaemonThreads()
        target = settings.connect(spec_of(settings, **spec), executor)
        try:
            return await asyncio.gather(*(call_target(target, one) for one in requests))
        finally:
            await target.close()
            await executor.aclose()

    return asyncio.run(ask())


def answer(settings: ProviderSettings, one: TargetRequest | None = None, **spec: Any) -> TargetResponse | Failure:
    return answers(settings, one or request(), **spec)[0]


def received_call(made: Callable[[ModelServer], ProviderSettings], one: TargetRequest | None = None) -> ModelCall:
    """Return the call that a model server received."""
    with ModelServer("yes") as server:
        found = answer(made(server), one)
        assert isinstance(found, TargetResponse), found
        (call,) = server.calls
        return call


def responses_to(made: Callable[[ModelServer], ProviderSettings], *said: Any) -> list[TargetResponse | Failure]:
    """Return a target's responses to these replies of a model server, one per call."""
    with ModelServer(list(said)) as server:
        return [answer(made(server)) for _ in said]


def embed_texts(settings: ProviderSettings, texts: list[str], timeout_s: float = 10.0) -> Embeddings | Failure:
    async def embed() -> Embeddings | Failure:
        target = settings.connect(spec_of(settings), DaemonThreads())
        assert isinstance(target, Embedder)
        try:
            return await target.embed(texts, timeout_s)
        finally:
            await target.close()

    return asyncio.run(embed())


def as_own_server(settings: Any) -> Any:
    """Return settings that treat the loopback server as the provider's own, so that the provider's prices apply."""
    kind = type("AtHome", (type(settings),), {"__slots__": (), "elsewhere": lambda _: None})
    return kind(**{name: getattr(settings, name) for name in options_of(settings)})


def failure_code(settings: ProviderSettings, one: TargetRequest | None = None, **spec: Any) -> str:
    found = answer(settings, one, **spec)
    assert isinstance(found, Failure), found
    return found.code
