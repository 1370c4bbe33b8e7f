"""What the work of a trial reaches during a run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv.app.wiring import Connections
from agentv.model.run.trial import Trial
from agentv.model.suite.workspace import Hooks, WorkLimits, WorkspaceCommand, WorkspaceSpec
from agentv.model.values.message import prompt_text
from agentv.model.values.response import Failure
from agentv.ports import Workspace

if TYPE_CHECKING:
    from agentv.extensions.agents.gateway.server import LocalGateway
    from agentv.extensions.agents.traces.spans import SpanReceivers
    from agentv.extensions.agents.trial.scripted_tools import LocalScriptedTools
    from agentv.extensions.agents.workspaces.workspaces import LocalWorkspaces


def limits_of(trial: Trial) -> WorkLimits:
    """How much the agent may do: as its case says, else as its suite does."""
    own, run = trial.case.limits, trial.suite.run
    turns = own.max_turns if own.max_turns is not None else run.max_turns
    calls = own.max_tool_calls if own.max_tool_calls is not None else run.max_tool_calls
    return WorkLimits(turns, calls, own.on_limit or run.on_limit, trial.budget_usd)


def agent_env(trial: Trial) -> dict[str, str]:
    """The variables that the suite, the workspace, the variant and the target set for an agent."""
    spec, variant = trial.case.workspace, trial.variant
    own = spec.env if spec is not None else {}
    varied = variant.env if variant is not None else {}
    return {**trial.suite.own_env, **own, **varied, **trial.target.env}


def with_facts(spec: WorkspaceSpec, trial: Trial) -> WorkspaceSpec:
    """The workspace whose hooks get the facts of a trial on stdin."""
    hooks = spec.hooks
    if not any(command.stdin for command in (*hooks.before_each, *hooks.after_each)):
        return spec
    case = trial.case
    facts = {"test_id": case.id, "case_input": prompt_text(case.input), "case_metadata": case.metadata}

    def on_stdin(commands: Iterable[WorkspaceCommand]) -> tuple[WorkspaceCommand, ...]:
        return tuple(
            replace(one, stdin=json.dumps({**json.loads(one.stdin), **facts}, default=str)) if one.stdin else one
            for one in commands
        )

    before_each, after_each = on_stdin(hooks.before_each), on_stdin(hooks.after_each)
    return replace(spec, hooks=Hooks(hooks.before_all, before_each, after_each, hooks.after_all))


class WorkContext:
    """What the work of a trial reaches during a run; the rest is loaded when the first trial needs it.

    Attributes:
        unanswered: failure of a target's call without a recorded answer; None: the target is called.
        exchanges: recorded model calls of agents, or None if none were recorded and none will be.
        target: gives the connected target of a spec; the same one at every call.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.unanswered, self.exchanges = connections.unanswered, connections.answers.exchanges
        self.target = connections.target

    @cached_property
    def workspaces(self) -> LocalWorkspaces:
        """Makes workspaces."""
        from agentv.extensions.agents.workspaces.workspaces import LocalWorkspaces

        return LocalWorkspaces(self._connections.workspace_settings())

    @cached_property
    def scripted_tools(self) -> LocalScriptedTools:
        """Starts scripted tools."""
        from agentv.extensions.agents.trial.scripted_tools import LocalScriptedTools

        return LocalScriptedTools(self._connections.executor)

    @cached_property
    def gateway(self) -> LocalGateway:
        """Between agents and their models."""
        from agentv.extensions.agents.gateway.server import LocalGateway

        connections = self._connections
        return LocalGateway(connections.throttle, connections.answers.spending, connections.clock.monotonic)

    @cached_property
    def receivers(self) -> SpanReceivers:
        """Take the spans of targets."""
        from agentv.extensions.agents.traces.spans import SpanReceivers

        return SpanReceivers()


async def new_workspace(trial: Trial, context: WorkContext) -> Workspace | Failure:
    """A new workspace for a trial of a case that has one, in the HOME that its target asks for."""
    spec = trial.case.workspace
    assert spec is not None  # noqa: S101  # the caller has looked
    spec, home = with_facts(spec, trial), getattr(trial.target.settings, "home", None)
    spec = spec if home is None else replace(spec, home=home)
    return await context.workspaces.open(spec, trial.variant, trial.suite.own_env)
