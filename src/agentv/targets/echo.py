"""`echo`: the prompt is the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.types import Calls, ProviderSettings
from agentv.targets.http.answers import from_text


@dataclass(frozen=True, slots=True)
class Echo(ProviderSettings):
    """Returns the prompt."""

    calls: ClassVar[Calls] = "nothing"
    short: ClassVar[str | None] = None
    free: ClassVar[bool] = True
    returns_context: ClassVar[bool] = False

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that needs nothing."""
        del spec, executor
        return _Echo()


class _Echo:
    def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        return from_text(request.prompt)

    async def close(self) -> None:
        """There is nothing to let go of."""
