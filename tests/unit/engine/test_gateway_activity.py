"""What the gateway counts of an agent that is still working."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from agentv.engine.agents.gateway_use import GatewayUse
from agentv.model.values.activity import AgentActivity
from agentv.model.values.trace import UsageStep
from agentv.model.values.usage import TokenUsage
from doubles.run_contexts import GivenRunContext
from doubles.trials import trial

REPORTED = AgentActivity("edit", 3, 2, 1, 0.5)


@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        ((), REPORTED),
        ((UsageStep(error="broke off"),), REPORTED),
        ((UsageStep("m", TokenUsage(10, 5), 0.01),) * 2, AgentActivity("edit", 3, 2, 30, 0.02)),
        ((UsageStep("m", TokenUsage(10, 5, 16)),) * 5, AgentActivity("edit", 5, 2, 80, None)),
    ],
)
def test_our_own_count_wins_over_what_an_agent_reports(steps, seen):
    session = SimpleNamespace(usages=lambda: steps)
    use = GatewayUse(trial(), session, GivenRunContext(lambda _: None), [], 0.0)
    assert use.seen(REPORTED) == seen
