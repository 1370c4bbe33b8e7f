"""`agentv results …`: the runs that lie on disk (SPEC section 12)."""

from __future__ import annotations

import click

from agentv.cli.lazy import LazyCommands

COMMANDS = {
    "list": "agentv.cli.results.list:command",
    "show": "agentv.cli.results.show:command",
    "export": "agentv.cli.results.export:command",
    "report": "agentv.cli.results.report:command",
    "merge": "agentv.cli.results.merge:command",
    "pin": "agentv.cli.results.pin:command",
    "delete": "agentv.cli.results.delete:command",
}


@click.group(
    "results",
    cls=LazyCommands,
    places=COMMANDS,
    epilog="Example: agentv results list",
)
def group() -> None:
    """Inspect past runs: list, show, export, merge, pin and delete them.

    A RUN is a run id, its directory, or `last`.
    """
