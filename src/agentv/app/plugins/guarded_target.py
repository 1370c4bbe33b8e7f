"""Targets of plugins, connected and called inside the guard: one that breaks the rules errs its own trials alone."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import cast

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Embeddings, Failure, TargetResponse
from agentv.ports import Connectable, Embedder, Executor, Target, TargetRequest
from agentv.targets.http.answers import checked
from agentv.user_code.functions.guard import ForeignError, foreign_code

RAISED = "target-raised"


def connected(spec: TargetSpec, executor: Executor) -> Target:
    """The target of a spec, ready to be asked; that of a plugin inside the guard."""
    settings = cast("Connectable", spec.settings)
    if not spec.plugin:
        return settings.connect(spec, executor)
    what = f"target '{spec.name}' of {spec.plugin}"
    try:
        with foreign_code(RAISED, what):
            target: object = settings.connect(spec, executor)
    except ForeignError as error:
        return UnconnectedTarget(error.failure)
    if not callable(getattr(target, "answer", None)) or not callable(getattr(target, "close", None)):
        why = f"{what}: connect() must return what has answer() and close(), and returned {type(target).__name__}"
        return UnconnectedTarget(Failure(RAISED, why))
    kind = GuardedEmbedder if isinstance(target, Embedder) else GuardedTarget
    return kind(target, what, executor)  # type: ignore[arg-type]  # it has both methods


class UnconnectedTarget:
    """A target that could not be connected: every call says why."""

    def __init__(self, failure: Failure) -> None:
        self._failure = failure

    def answer(self, request: TargetRequest) -> Failure:  # noqa: ARG002  # the same for every request
        """The reason why the target cannot be called."""
        return self._failure

    async def close(self) -> None:
        """There is nothing to let go of."""


class GuardedTarget:
    """A plugin's target. A plain `answer` runs on a thread; an async one runs here, and must not block."""

    def __init__(self, target: Target, what: str, executor: Executor) -> None:
        self._target = target
        self._what = what
        self._executor = executor
        self._is_coroutine = inspect.iscoroutinefunction(target.answer)

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """The plugin's answer; a Failure if it raises or returns another type."""
        try:
            given = (
                self._begun(request) if self._is_coroutine else await self._executor.call(partial(self._begun, request))
            )
            with foreign_code(RAISED, self._what):
                found: object = await given if inspect.isawaitable(given) else given
        except ForeignError as error:
            return error.failure
        if isinstance(found, TargetResponse):
            response = checked(found)
            if isinstance(response, Failure):
                return Failure(response.code, f"{self._what}: {response.message}")
            return response
        if isinstance(found, Failure):
            return found
        returned = f"and returned {type(found).__name__}"
        return Failure("bad-answer", f"{self._what}: answer() must return a TargetResponse or a Failure, {returned}")

    def _begun(self, request: TargetRequest) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        with foreign_code(RAISED, self._what):
            return self._target.answer(request)

    async def close(self) -> None:
        """Release the resources of the target. An exception in it changes no answer."""
        try:
            with foreign_code(RAISED, self._what):
                await self._target.close()
        except ForeignError:
            return


class GuardedEmbedder(GuardedTarget):
    """A plugin's target that also turns texts into vectors."""

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """The vectors of the texts; a Failure where it raises, or returns anything else."""
        assert isinstance(self._target, Embedder)  # noqa: S101  # it was when this was made
        try:
            with foreign_code(RAISED, self._what):
                found: object = await self._target.embed(texts, timeout_s)
        except ForeignError as error:
            return error.failure
        if isinstance(found, Embeddings | Failure):
            return found
        returned = f"and returned {type(found).__name__}"
        return Failure("bad-answer", f"{self._what}: embed() must return Embeddings or a Failure, {returned}")
