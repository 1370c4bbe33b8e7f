"""Options of `agentv eval` about agents: settings of the run, by the names of their parameters."""

from __future__ import annotations

import click

VARIANT = click.Option(
    ["--variant", "variants"], multiple=True, metavar="NAME", help="Run only this variant. Repeatable."
)
SANDBOX = click.Option(
    ["--sandbox"], type=click.Choice(("none", "bwrap", "docker")), help="What confines agents to their workspaces."
)
KEEP_WORKSPACES = click.Option(
    ["--keep-workspaces"],
    type=click.Choice(("none", "failed", "all")),
    help="Workspaces to keep (default: failed).",
)
WORKSPACE_PATH = click.Option(
    ["--workspace-path"], metavar="DIR", help="Run agents in this existing directory itself, one at a time."
)
