"""Network settings that cut an agent off from its model or tools, detected when a suite is loaded."""

from dataclasses import dataclass

import pytest

from agentv.authoring.source.report import Report
from agentv.extensions.agents.authoring.reader import check_network
from agentv.model.suite.suite import TargetSpec
from agentv.model.suite.tools import ModelUpstream, ScriptedServer
from agentv.model.suite.workspace import WorkspaceSpec


@dataclass(frozen=True)
class AgentSettings:
    key: str = "k"
    gateway: bool = True

    model_protocol: str = "openai"

    @property
    def upstream(self):
        return ModelUpstream("openai", "https://api.example.com/v1", self.key) if self.key and self.gateway else None


def messages(network, settings, transport="stdio"):
    report = Report()
    tools = (ScriptedServer("shop", (), transport=transport),)
    target = TargetSpec("coder", "claude", settings, upstream=getattr(settings, "upstream", None))
    check_network(WorkspaceSpec(network=network), tools, (target,), report)
    return [one.message for one in report.diagnostics]


@pytest.mark.parametrize(
    ("network", "settings", "transport", "expected"),
    [
        ("none", AgentSettings(), "stdio", ["'network: none' keeps the agent of 'coder' from its model"]),
        ("none", AgentSettings(key=""), "stdio", []),
        ("none", object(), "stdio", []),
        ("none", object(), "http", ["'network: none' keeps agents from the tools of 'shop', which are served over HTTP"]),
        ("loopback", AgentSettings(), "http", []),
        ("loopback", AgentSettings(gateway=False), "http", ["'network: loopback' reaches the gateway only, and 'coder' has 'gateway: false'"]),
        ("host", AgentSettings(gateway=False), "http", []),
    ],
)  # fmt: skip
def test_what_a_network_keeps_an_agent_from(network, settings, transport, expected):
    assert messages(network, settings, transport) == expected
