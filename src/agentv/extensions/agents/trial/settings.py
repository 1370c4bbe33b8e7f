"""Settings of an agent's work, as the suite, the case, the variant and the target of a trial give them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from agentv.model.run.trial import Trial
from agentv.model.suite.workspace import Hooks, WorkLimits, WorkspaceCommand, WorkspaceSpec
from agentv.model.values.message import prompt_text


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
