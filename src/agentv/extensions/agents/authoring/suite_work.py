"""Reader of the workspaces, tools and solutions of one suite. What reads each is loaded when one is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from agentv.authoring.cases.context import SuiteWork
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredCase
from agentv.authoring.source.nodes import MapNode, Node
from agentv.authoring.source.report import Report
from agentv.authoring.targets.registry import TargetRegistry
from agentv.model.suite.suite import Case, SimulatedUser, SkillMinimums, TargetSpec
from agentv.model.suite.tools import ScriptedServer
from agentv.model.suite.workspace import Solution, Variant, WorkspaceSpec

if TYPE_CHECKING:
    from agentv.extensions.agents.authoring.reader import WorkspaceReader
    from agentv.extensions.agents.authoring.tools import ToolReader


class SuiteReader:
    """An `agentv.authoring.cases.context.WorkReader`."""

    def __init__(self, work: SuiteWork) -> None:
        self._work = work

    @cached_property
    def _workspaces(self) -> WorkspaceReader:
        from agentv.extensions.agents.authoring.reader import WorkspaceReader

        return WorkspaceReader(self._work)

    @cached_property
    def _tools(self) -> ToolReader:
        from agentv.extensions.agents.authoring.tools import ToolReader

        return ToolReader(self._work.authored.tools)

    def variants(self, reading: Reading) -> tuple[Variant, ...]:
        """The variants of the suite."""
        return self._workspaces.variants(self._work.authored.variants, reading)

    def activation(self, node: Node, reading: Reading) -> tuple[Sequence[MapNode], SkillMinimums | None]:
        """The cases of `activation`, and what every skill must reach."""
        from agentv.extensions.agents.authoring.activation import read_activation

        workspace = self._work.workspace
        if self._work.request.workspace_path is not None or (
            isinstance(workspace, MapNode) and "path" in workspace.items
        ):
            message = "a directory of your own is used as it is, so that agents do not get the skills of 'activation'"
            hint = "leave out --workspace-path, or 'path' of 'workspace'"
            reading.report.error("bad-value", node, message, hint=hint)
            return (), None
        return read_activation(node, workspace.get("files") if isinstance(workspace, MapNode) else None, reading)

    def workspace(self, case: AuthoredCase, reading: Reading) -> WorkspaceSpec | None:
        """The workspace of a case."""
        return self._workspaces.of_case(case, reading)

    def tools(self, case: AuthoredCase, reading: Reading) -> tuple[ScriptedServer, ...]:
        """The scripted tools of a case."""
        return self._tools.of_case(case.tools, reading)

    def user(self, node: Node, reading: Reading, registry: TargetRegistry) -> SimulatedUser | None:
        """The simulated user of a case."""
        from agentv.extensions.agents.authoring.tools import read_user

        return read_user(node, reading, registry)

    def solution(self, case: AuthoredCase, tools: Sequence[ScriptedServer], reading: Reading) -> Solution | None:
        """The solution of a case."""
        from agentv.extensions.agents.authoring.tools import read_solution

        return None if case.solution is None else read_solution(case.solution, tools, reading)

    def check(self, case: Case, targets: Iterable[TargetSpec], report: Report) -> None:
        """Report targets that a closed network keeps from what they need."""
        if case.workspace is not None and case.workspace.network != "host":
            check_network(case.workspace, case.tools, targets, report)


LOOPBACK = "write 'network: loopback', which reaches the gateway and the tools of the case, and nothing else"


def check_network(
    spec: WorkspaceSpec, tools: Iterable[ScriptedServer], targets: Iterable[TargetSpec], report: Report
) -> None:
    """Report an agent that cannot reach its model, and tools that cannot be reached."""
    if spec.network == "none":
        kept = [f"the agent of '{one.name}' from its model" for one in targets if one.upstream is not None]
        http = (one.name for one in tools if one.transport == "http")
        kept += [f"agents from the tools of '{name}', which are served over HTTP" for name in http]
        for one in kept:
            report.error("bad-value", spec.span, f"'network: none' keeps {one}", hint=LOOPBACK)
    elif spec.network == "loopback":
        for target in targets:
            settings = target.settings
            is_without = getattr(settings, "gateway", None) is False
            if is_without and getattr(settings, "model_protocol", None) is not None:
                message = f"'network: loopback' reaches the gateway only, and '{target.name}' has 'gateway: false'"
                report.error("bad-value", spec.span, message, hint="remove 'gateway: false'")
