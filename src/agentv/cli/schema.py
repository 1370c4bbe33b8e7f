"""`agentv schema`."""

from __future__ import annotations

import click

from agentv.errors import ExitStatus

KINDS = ("eval", "targets", "template", "meta", "exam")


@click.command("schema", epilog="Example: agentv schema > eval-schema.json")
@click.option("--kind", type=click.Choice(KINDS), default="eval", show_default=True, help="Kind of file.")
def command(kind: str) -> int:
    """Print the JSON Schema of eval files, for editors.

    The schema is generated from the declarations that the loader checks files with.
    """
    from agentv.app.authored.schema import schema_text

    click.echo(schema_text(kind), nl=False)
    return ExitStatus.PASSED
