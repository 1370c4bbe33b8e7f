"""`agentv prompt init`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.app.prompts.making import PromptFormat
from agentv.cli.lazy import Choice
from agentv.errors import ExitStatus


@click.command("init", epilog="Example: agentv prompt init diff-surgeon --format md")
@click.argument("name", metavar="ID")
@click.option(
    "--format",
    "form",
    type=Choice(("xml", "md", "txt")),
    default="xml",
    help="Format of the prompt file (default xml).",
)
def command(name: str, form: PromptFormat) -> int:
    """Create a prompt with its description, an exam, and the inputs of a first case.

    Writes to `prompts_dir` of .agentv/config.yaml, or else to the closest directory `prompts`. If neither exists,
    creates `prompts` in the root of the repository. Never changes existing files.
    """
    from agentv.app.prompts.library import Library
    from agentv.app.prompts.making import make_prompt
    from agentv.reports.text.escaping import one_line
    from agentv.reports.text.paths import shown_from

    made = make_prompt(name, form, Library.here())
    here = str(Path.cwd())
    for path in made.written:
        click.echo(f"wrote {one_line(shown_from(path, here))}", err=True)
    for path in made.kept:
        click.echo(f"kept {one_line(shown_from(path, here))}, which already existed", err=True)
    click.echo(f"\nWrite the prompt and its exam, then: agentv prompt eval {name}", err=True)
    return ExitStatus.PASSED
