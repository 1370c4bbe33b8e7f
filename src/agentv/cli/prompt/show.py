"""`agentv prompt show`."""

from __future__ import annotations

import click

from agentv.errors import ExitStatus


@click.command("show", epilog="Example: agentv prompt show diff-surgeon")
@click.argument("name", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(name: str, *, as_json: bool) -> int:
    """Show one prompt: its description, its exam, every recorded attempt, and whether it may be promoted.

    ID is the id of the prompt or a path to its directory.
    """
    from agentv.app.prompts.examining import Examiner
    from agentv.app.prompts.library import Library
    from agentv.app.prompts.showing import shown_prompt
    from agentv.cli.printing import width_and_color
    from agentv.reports.commands.prompts import prompt_json, render_prompt

    library = Library.here()
    shown = shown_prompt(Examiner(library).examine(library.one(name)))
    if as_json:
        click.echo(prompt_json(shown, here=library.working))
    else:
        width, color = width_and_color()
        click.echo(render_prompt(shown, here=library.working, width=min(width, 100), color=color), color=color)
    return ExitStatus.PASSED
