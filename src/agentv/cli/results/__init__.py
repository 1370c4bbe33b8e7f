"""`agentv results …`: the runs that lie on disk (SPEC section 12)."""

from __future__ import annotations

import click

from agentv.cli.lazy import LazyCommands

COMMANDS = {
    "list": "agentv.cli.results.runs:list_command",
    "show": "agentv.cli.results.trials:show_command",
    "export": "agentv.cli.results.trials:export_command",
    "report": "agentv.cli.results.trials:report_command",
    "merge": "agentv.cli.results.runs:merge_command",
    "pin": "agentv.cli.results.runs:pin_command",
    "delete": "agentv.cli.results.runs:delete_command",
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
