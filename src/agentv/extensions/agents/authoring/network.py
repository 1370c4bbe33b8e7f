"""Networks of workspaces that leave an agent without what it needs: its model, or tools over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentv.authoring.source.report import Report
from agentv.model.suite.suite import TargetSpec
from agentv.model.suite.tools import ScriptedServer
from agentv.model.suite.workspace import WorkspaceSpec

LOOPBACK = "write 'network: loopback', which reaches the gateway and the tools of the case, and nothing else"


def check_network(
    spec: WorkspaceSpec, tools: Iterable[ScriptedServer], targets: Iterable[TargetSpec], report: Report
) -> None:
    """Report an agent that cannot reach its model, and tools that cannot be reached."""
    if spec.network == "none":
        for message in (*_without_model(targets), *_without_tools(tools)):
            report.error("bad-value", spec.span, f"'network: none' {message}", hint=LOOPBACK)
    elif spec.network == "loopback":
        for target in targets:
            settings = target.settings
            is_without = getattr(settings, "gateway", None) is False
            if is_without and getattr(settings, "model_protocol", None) is not None:
                message = f"'network: loopback' reaches the gateway only, and '{target.name}' has 'gateway: false'"
                report.error("bad-value", spec.span, message, hint="remove 'gateway: false'")


def _without_model(targets: Iterable[TargetSpec]) -> Iterator[str]:
    for target in targets:
        if target.upstream is not None:
            yield f"keeps the agent of '{target.name}' from its model"


def _without_tools(tools: Iterable[ScriptedServer]) -> Iterator[str]:
    for server in tools:
        if server.transport == "http":
            yield f"keeps agents from the tools of '{server.name}', which are served over HTTP"
