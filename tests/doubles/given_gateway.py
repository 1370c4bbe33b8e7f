"""A gateway with the calls and the failure that a test gives."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from agentv.extensions.agents.gateway.session import CountedCall
from agentv.model.suite.tools import GatewayAccess
from agentv.model.values.trace import UsageStep
from agentv.model.values.usage import TokenUsage

STEP = UsageStep("m", TokenUsage(10, 5, 15), 0.5, 1.0, 2.0, evidence="gateway")


@dataclass
class FakeSession:
    """A `GatewaySession`."""

    notes_of_run: list[str]
    steps: tuple[UsageStep, ...] = (STEP,)
    failure: Any = None
    abandoned: bool = False
    refused: asyncio.Event = field(default_factory=asyncio.Event)
    now_ms: float = 0.0
    upstream: Any = None
    exchanges: Any = None
    access: GatewayAccess = field(default_factory=lambda: GatewayAccess("http://127.0.0.1:1", "token"))

    def usages(self):
        return self.steps

    @property
    def calls(self):
        calls = []
        for one in self.steps:
            call = CountedCall(1, one.model or "", one.started_ms or 0.0, ended=True, duration_ms=one.duration_ms)
            call.tokens, call.cost_usd = one.tokens, one.cost_usd
            calls.append(call)
        return calls

    def notes(self):
        return ("noted",)

    async def failed(self):
        await self.refused.wait()

    async def close(self):
        self.notes_of_run.append("gateway closed")


@dataclass
class FakeGateway:
    """A `ModelGateway` with one session, or a failure."""

    session: Any
    opened: list[Any] = field(default_factory=list)

    async def open(self, trial, upstream, directory="", exchanges=None):
        self.opened.append(trial)
        if isinstance(self.session, FakeSession):
            self.session.upstream, self.session.exchanges = upstream, exchanges
        return self.session

    async def close(self):
        pass
