"""`agentv prompt init`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.app.prompts.making import PromptFormat
from agentv.errors import ExitStatus


@click.command("init", epilog="Example: agentv prompt init diff-surgeon --format md")
@click.argument("name", metavar="ID")
@click.option(
    "--format",
    "form",
    type=click.Choice(("xml", "md", "txt")),
    default="xml",
    help="Of the prompt's file; xml if nothing is said.",
)
def command(name: str, form: PromptFormat) -> int:
    """Start a prompt: its text, what it is for, an exam, and the inputs of a first case.

    It goes into the library: `prompts_dir` of .agentv/config.yaml, else the closest directory `prompts`, which is made
    in the root of the repository where there is none. What stands there already is never changed.
    """
    from agentv.app.prompts.library import Library
    from agentv.app.prompts.making import make_prompt
    from agentv.reports.paths import shown_from
    from agentv.reports.text import one_line

    made = make_prompt(name, form, Library.here())
    here = str(Path.cwd())
    for path in made.written:
        click.echo(f"wrote {one_line(shown_from(path, here))}", err=True)
    for path in made.kept:
        click.echo(f"kept {one_line(shown_from(path, here))}, which stood there", err=True)
    click.echo(f"\nWrite the prompt and its exam, then: agentv prompt eval {name}", err=True)
    return ExitStatus.PASSED
