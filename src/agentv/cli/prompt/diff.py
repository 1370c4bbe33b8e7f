"""`agentv prompt diff`."""

from __future__ import annotations

import click

from agentv.errors import ExitStatus


@click.command("diff", epilog="Example: agentv prompt diff diff-surgeon")
@click.argument("name", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout, with both versions of every changed text.")
def command(name: str, *, as_json: bool) -> int:
    """Show what changed since the last recorded exam: prompt, description, exam and inputs.

    Examined texts are stored in .agentv/exams/, which is not shared. If an exam ran elsewhere, only the names of the
    changed files are known.
    """
    from agentv.app.prompts.examining import Examiner
    from agentv.app.prompts.library import Library
    from agentv.app.prompts.showing import compare
    from agentv.cli.printing import width_and_color
    from agentv.reports.commands.differences import compared_with, differences_json, render_differences
    from agentv.reports.text.escaping import one_line

    library = Library.here()
    found = compare(Examiner(library).examine(library.one(name)))
    if as_json:
        click.echo(differences_json(found))
    elif found.exam_row is None:
        click.echo(f"'{one_line(found.prompt)}' has no recorded exam with the text that it examined", err=True)
    elif not found.differences:
        click.echo(f"nothing changed since {compared_with(found)}", err=True)
    else:
        _, color = width_and_color()
        click.echo(render_differences(found, color=color), color=color)
    return ExitStatus.PASSED
