"""Base of the providers of agents that print a JSON stream: their settings, and how a target is connected."""

from __future__ import annotations

from dataclasses import dataclass

from agentv.extensions.agents.adapters.native.settings import NativeAgentSettings
from agentv.model.suite.suite import TargetSpec
from agentv.ports import Executor, Target


@dataclass(frozen=True, slots=True)
class NativeProvider(NativeAgentSettings):
    """Settings of one agent. An adapter derives from it, sets the class attributes, and says `agent()`."""

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that starts the agent for each turn."""
        from agentv.extensions.agents.adapters.native.target import NativeTarget

        del spec, executor
        return NativeTarget(self)
