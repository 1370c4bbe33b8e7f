"""`agentv trace …`: what agents did in a stored run."""

from __future__ import annotations

import click

from agentv.cli.lazy import LazyCommands

COMMANDS = {
    "show": "agentv.extensions.agents.commands.trace.show:command",
    "stats": "agentv.extensions.agents.commands.trace.stats:command",
}


@click.group("trace", cls=LazyCommands, places=COMMANDS, epilog="Example: agentv trace show last refund")
def group() -> None:
    """Inspect the traces of a run: messages, tool calls, tokens, cost and errors.

    A RUN is a run id, its directory, or `last`.
    """
