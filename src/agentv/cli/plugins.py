"""`agentv plugins`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.errors import ExitStatus


@click.command("plugins", epilog="Example: agentv plugins --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(*, as_json: bool) -> int:
    """List agentv's extensions, and installed plugins with their packages and versions.

    Loads every plugin and says what is wrong with those that cannot be used.

    Exit status: 2 if a plugin is broken.
    """
    from agentv.app.plugins.listing import list_extensions, list_plugins
    from agentv.reports.commands.plugins import plugins_json, render_plugins

    found = (*list_extensions(), *list_plugins())
    click.echo(plugins_json(found) if as_json else render_plugins(found, here=str(Path.cwd())))
    return ExitStatus.WRONG if any(one.status == "broken" for one in found) else ExitStatus.PASSED
