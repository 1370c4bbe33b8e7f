"""`agentv judge …`: how well judges agree with people."""

from __future__ import annotations

import click

from agentv.cli.lazy import LazyCommands

COMMANDS = {
    "check": "agentv.extensions.labels.commands.judge:check",
    "compare": "agentv.extensions.labels.commands.judge:compare",
}


@click.group("judge", cls=LazyCommands, places=COMMANDS, epilog="Example: agentv judge check last")
def group() -> None:
    """Measure how well a judge agrees with people.

    `agentv label` collects the labels that it is measured by.
    """
