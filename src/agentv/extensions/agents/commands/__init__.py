"""Commands about the work of agents (prepare it, grade it, check cases, traces, sessions), and options of `eval`."""

from __future__ import annotations

from agentv.cli.lazy import Option
from agentv.cli.values import Choice

VARIANT = Option(
    ["--variant", "variants"],
    multiple=True,
    metavar="NAME",
    help="Run only this variant. Repeatable.",
    section="Agents",
)
SANDBOX = Option(
    ["--sandbox"],
    type=Choice(("none", "bwrap", "docker")),
    help="What confines agents to their workspaces.",
    section="Agents",
)
KEEP_WORKSPACES = Option(
    ["--keep-workspaces"],
    type=Choice(("none", "failed", "all")),
    help="Workspaces to keep (default: failed).",
    section="Agents",
)
WORKSPACE_PATH = Option(
    ["--workspace-path"],
    metavar="DIR",
    help="Run agents in this existing directory itself, one at a time.",
    section="Agents",
)
