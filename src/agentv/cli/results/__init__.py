"""`agentv results …`: the runs that lie on disk (SPEC section 12)."""

from __future__ import annotations

import click

from agentv.cli.lazy import LazyCommands

COMMANDS = {
    "list": "agentv.cli.results.list:command",
    "show": "agentv.cli.results.show:command",
    "export": "agentv.cli.results.export:command",
    "report": "agentv.cli.results.report:command",
    "delete": "agentv.cli.results.delete:command",
}


@click.group(
    "results",
    cls=LazyCommands,
    places=COMMANDS,
    epilog="Example: agentv results list",
)
def group() -> None:
    """Look at runs that were: list and show them, write them as other files, delete them.

    RUN is the id of a run, its directory, or `last`.
    """
