"""The works of a run: what opens them, and the workspaces, scripted tools and gateway that they share."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from agentv.app.wiring import Connections
from agentv.engine.calls.call_throttle import CallThrottle
from agentv.extensions.agents.trial.work_context import new_workspace
from agentv.model.run.trial import Trial
from agentv.model.suite.gateway import ModelUpstream
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure
from agentv.ports import Workspace
from agentv.work_ports import ConversationUser, ScriptedTools, TrialWork, Workspaces

if TYPE_CHECKING:
    from agentv.extensions.agents.frameworks.receiver import SpanReceivers
    from agentv.extensions.agents.gateway.ports import ModelCalls, ModelGateway


class UpstreamLimits:
    """Limits of the model calls of agents, by the run's throttle. A `ModelCallLimits`."""

    def __init__(self, throttle: CallThrottle) -> None:
        self._throttle = throttle

    def model_calls(self, spec: TargetSpec, upstream: ModelUpstream, budget_usd: float | None) -> ModelCalls:
        """Those of one trial."""
        from agentv.extensions.agents.gateway.model_apis import endpoint_of_upstream

        return self._throttle.model_calls(spec, endpoint_of_upstream(upstream), budget_usd)


class RunWorks:
    """The works of a run's trials, an `agentv.work_ports.TrialWorks` and their `WorkContext`.

    Attributes:
        failures: what failed after the last trial.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.clock, self.unanswered = connections.clock, connections.unanswered
        self.exchanges, self.target = connections.answers.exchanges, connections.target
        self.failures: tuple[Failure, ...] = ()

    @cached_property
    def workspaces(self) -> Workspaces:
        """Makes workspaces."""
        from agentv.extensions.agents.workspaces.workspaces import LocalWorkspaces

        return LocalWorkspaces(self._connections.workspace_settings())

    @cached_property
    def scripted_tools(self) -> ScriptedTools:
        """Starts scripted tools."""
        from agentv.extensions.agents.scripted_tools.servers import LocalScriptedTools

        return LocalScriptedTools(self._connections.executor)

    @cached_property
    def gateway(self) -> ModelGateway:
        """Between agents and their models."""
        from agentv.extensions.agents.gateway.model_apis import KnownModelApis
        from agentv.extensions.agents.gateway.server import LocalGateway

        limits, spending = UpstreamLimits(self._connections.throttle), self._connections.answers.spending
        return LocalGateway(limits, KnownModelApis(), spending, self.clock.monotonic)

    @cached_property
    def receivers(self) -> SpanReceivers:
        """Take the spans of targets."""
        from agentv.extensions.agents.frameworks.receiver import SpanReceivers

        return SpanReceivers()

    async def open(self, trial: Trial) -> TrialWork | Failure:
        """The workspace, the tools and the gateway of a trial; why they cannot be had."""
        from agentv.extensions.agents.trial.opening import open_work

        return await open_work(trial, self)

    async def workspace(self, trial: Trial) -> Workspace | Failure:
        """A new workspace for a trial."""
        return await new_workspace(trial, self)

    def work(self, trial: Trial, workspace: Workspace | None) -> TrialWork:
        """The work of a trial whose agent has worked."""
        from agentv.extensions.agents.trial.work import AgentTrial

        return AgentTrial(trial, self, workspace)

    def user(self, trial: Trial) -> ConversationUser:
        """Who talks with the target in a trial of a case with `user`."""
        from agentv.extensions.agents.trial.simulated_user import TrialUser, user_target

        return TrialUser(trial, user_target(trial, self._connections))

    async def close(self) -> None:
        """Stop listening, run the hooks after all trials, and remove what is left."""
        if "gateway" in vars(self):
            await self.gateway.close()
        if "receivers" in vars(self):
            await self.receivers.close()
        if "workspaces" in vars(self):
            self.failures = await self.workspaces.close()
