"""The works of a run's trials."""

from __future__ import annotations

from agentv.app.wiring import Connections
from agentv.extensions.agents.trial.work_context import WorkContext, new_workspace
from agentv.model.run.trial import Trial
from agentv.model.values.response import Failure
from agentv.ports import Workspace
from agentv.work_ports import ConversationUser, TrialWork


class RunWorks(WorkContext):
    """The works of a run's trials, an `agentv.work_ports.TrialWorks`.

    Attributes:
        failures: what failed after the last trial.
    """

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        self.failures: tuple[Failure, ...] = ()

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
