"""What is known of a session with an agent, and the trace of its latest turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentv.extensions.agents.acp_values import usage_of_turn
from agentv.extensions.agents.adapters.acp.trace_builder import TraceBuilder, usage_of
from agentv.extensions.agents.adapters.acp.transport import AcpTransport
from agentv.model.values.response import TargetResponse
from agentv.model.values.trace import Step, Trace, UsageStep
from agentv.model.values.usage import TokenUsage

if TYPE_CHECKING:
    from acp.schema import InitializeResponse

NATIVE_NAME = "acp.jsonl"


@dataclass(slots=True)
class SessionFacts:
    """What an agent says of itself and its session.

    Attributes:
        agent: its answer to the initialization.
        id: of the session.
        model: that the session is set to; None: the agent does not say.
        earlier_cost_usd, earlier_tokens: of the turns that have ended.
    """

    agent: InitializeResponse | None = None
    id: str = ""
    model: str | None = None
    earlier_cost_usd: float = 0.0
    earlier_tokens: TokenUsage | None = None

    def end_turn(self, builder: TraceBuilder, response: TargetResponse) -> None:
        """A turn has ended with an answer: what it took belongs to the earlier ones from now on."""
        self.earlier_cost_usd = builder.cost_usd or self.earlier_cost_usd
        used, earlier = response.token_usage, self.earlier_tokens
        self.earlier_tokens = used if earlier is None else earlier + (used or TokenUsage())

    def cost(self, builder: TraceBuilder) -> float | None:
        """Of this turn: the agent gives that of the session."""
        whole = builder.cost_usd
        return None if whole is None else max(0.0, whole - self.earlier_cost_usd)

    def trace(self, builder: TraceBuilder, transport: AcpTransport, reason: str, ended: Any) -> Trace:
        """The trace of a turn.

        Args:
            builder: has its steps.
            transport: has the stream as it came.
            reason: why the agent ended it, in its own words.
            ended: the agent's answer to the prompt, or None.
        """
        steps: tuple[Step, ...] = builder.steps(cancelled=ended is None)
        agent = self.agent and self.agent.agent_info
        reported, cost = usage_of(getattr(ended, "usage", None)), self.cost(builder)
        usage = usage_of_turn(agent.name if agent else "", reported, called_tools=bool(builder.calls))
        if usage is not None or cost is not None:
            steps = (*steps, UsageStep(builder.model or self.model, usage, cost))
        return Trace(
            steps,
            source="acp",
            agent=agent.name if agent else "",
            agent_version=agent.version if agent else "",
            session_id=self.id,
            stop_reason=reason,
            duration_ms=builder.now_ms,
            metadata=self.metadata(builder, transport),
            native=transport.native(),
            native_name=NATIVE_NAME,
        )

    def metadata(self, builder: TraceBuilder, transport: AcpTransport) -> dict[str, Any]:
        """What is known of the agent beside its steps."""
        agent = self.agent
        facts: dict[str, Any] = {"session_id": self.id, "turns": builder.turns}
        if agent is not None:
            capabilities = agent.agent_capabilities
            facts |= {
                "protocol_version": agent.protocol_version,
                "capabilities": capabilities.model_dump(mode="json", by_alias=True, exclude_none=True)
                if capabilities
                else {},
            }
            if agent.agent_info is not None:
                facts |= {"agent": agent.agent_info.name, "agent_version": agent.agent_info.version}
        model = builder.model or self.model
        facts |= {"model": model} if model else {}
        facts |= {"noise_lines": transport.noise} if transport.noise else {}
        return facts | ({"native_truncated": True} if transport.truncated else {})
