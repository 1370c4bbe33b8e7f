"""`agentv prompt list`."""

from __future__ import annotations

import click

from agentv.errors import ExitStatus


@click.command("list", epilog="Example: agentv prompt list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(*, as_json: bool) -> int:
    """List the prompts of the library with their status, their last exam, and what changed since.

    `(edited)` after a status means that the prompt has changed since it got that status.
    """
    from agentv.app.prompts.library import Library
    from agentv.app.prompts.showing import listed_prompts
    from agentv.cli.printing import width_and_color
    from agentv.reports.commands.prompts import list_json, render_list

    library = Library.here()
    prompts = list(listed_prompts(library.all()))
    if as_json:
        click.echo(list_json(prompts, here=library.working))
    else:
        width, color = width_and_color()
        click.echo(render_list(prompts, width=width, color=color), color=color)
    return ExitStatus.PASSED
