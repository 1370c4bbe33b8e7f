"""What the work of a trial reaches during a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from agentv.engine.calls.recorded_call import Unanswered
from agentv.extensions.agents.trial.settings import with_facts
from agentv.model.run.trial import Trial
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure
from agentv.ports import Clock, Target, Workspace
from agentv.work_ports import ModelExchanges, ScriptedTools, Workspaces

if TYPE_CHECKING:
    from agentv.extensions.agents.frameworks.receiver import SpanReceivers
    from agentv.extensions.agents.gateway.ports import ModelGateway


class WorkContext(Protocol):
    """What the work of a trial reaches during a run."""

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    @property
    def unanswered(self) -> Unanswered | None:
        """Failure of a target's call without a recorded answer; None: the target is called."""
        ...

    @property
    def exchanges(self) -> ModelExchanges | None:
        """Recorded model calls of agents, or None if none were recorded and none will be."""
        ...

    @property
    def workspaces(self) -> Workspaces:
        """Makes workspaces; loaded when the first trial needs one."""
        ...

    @property
    def scripted_tools(self) -> ScriptedTools:
        """Starts scripted tools; loaded when the first trial needs one."""
        ...

    @property
    def gateway(self) -> ModelGateway:
        """Between agents and their models; it listens from the first trial on that needs it."""
        ...

    @property
    def receivers(self) -> SpanReceivers:
        """Take the spans of targets; loaded when the first trial needs one."""
        ...

    def target(self, spec: TargetSpec) -> Target:
        """The connected target of a spec; the same one at every call."""
        ...


async def new_workspace(trial: Trial, context: WorkContext) -> Workspace | Failure:
    """A new workspace for a trial of a case that has one, in the HOME that its target asks for."""
    spec = trial.case.workspace
    assert spec is not None  # noqa: S101  # the caller has looked
    spec, home = with_facts(spec, trial), getattr(trial.target.settings, "home", None)
    return await context.workspaces.open(
        spec if home is None else replace(spec, home=home), trial.variant, trial.suite.own_env
    )
