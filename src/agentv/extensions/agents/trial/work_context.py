"""What the work of a trial reaches during a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from agentv.engine.calls.recorded_call import Unanswered
from agentv.model.run.trial import Trial
from agentv.model.suite.suite import TargetSpec
from agentv.model.suite.workspace import Hooks, WorkLimits, WorkspaceCommand, WorkspaceSpec
from agentv.model.values.message import prompt_text
from agentv.model.values.response import Failure
from agentv.ports import Clock, Target, Workspace
from agentv.work_ports import ModelExchanges, ScriptedTools, Workspaces

if TYPE_CHECKING:
    from agentv.extensions.agents.frameworks.receiver import SpanReceivers
    from agentv.extensions.agents.gateway.ports import ModelGateway


def limits_of(trial: Trial) -> WorkLimits:
    """How much the agent may do: as its case says, else as its suite does."""
    own, run = trial.case.limits, trial.suite.run
    return WorkLimits(
        own.max_turns if own.max_turns is not None else run.max_turns,
        own.max_tool_calls if own.max_tool_calls is not None else run.max_tool_calls,
        own.on_limit or run.on_limit,
        trial.budget_usd,
    )


def agent_env(trial: Trial) -> dict[str, str]:
    """The variables that the suite, the workspace, the variant and the target set for an agent."""
    spec, variant = trial.case.workspace, trial.variant
    return {
        **trial.suite.own_env,
        **(spec.env if spec is not None else {}),
        **(variant.env if variant is not None else {}),
        **trial.target.env,
    }


def with_facts(spec: WorkspaceSpec, trial: Trial) -> WorkspaceSpec:
    """The workspace whose hooks get the facts of a trial on stdin."""
    hooks = spec.hooks
    if not any(command.stdin for command in (*hooks.before_each, *hooks.after_each)):
        return spec
    case = trial.case
    facts: Mapping[str, object] = {
        "test_id": case.id,
        "case_input": prompt_text(case.input),
        "case_metadata": case.metadata,
    }

    def on_stdin(commands: Iterable[WorkspaceCommand]) -> tuple[WorkspaceCommand, ...]:
        return tuple(
            replace(one, stdin=json.dumps({**json.loads(one.stdin), **facts}, default=str)) if one.stdin else one
            for one in commands
        )

    return replace(
        spec,
        hooks=Hooks(hooks.before_all, on_stdin(hooks.before_each), on_stdin(hooks.after_each), hooks.after_all),
    )


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
