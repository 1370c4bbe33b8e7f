"""`agentv schema`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.cli.lazy import Choice
from agentv.errors import ExitStatus

KINDS = ("eval", "targets", "template", "meta", "exam")


@click.command("schema", epilog="Example: agentv schema > eval-schema.json")
@click.option("--kind", type=Choice(KINDS), default="eval", show_default=True, help="Kind of file.")
def command(kind: str) -> int:
    """Print the JSON Schema of eval files, for editors.

    The schema is generated from the declarations that the loader checks files with.

    In a project (a directory with .agentv, or one below it), it lists the assertion types in .agentv/assertions and
    rejects all other names. Elsewhere, it rejects only names that are one slip away from a known one.
    """
    from agentv.app.authored.schema import in_project, schema_text

    here = str(Path.cwd())
    click.echo(schema_text(kind, here if in_project(here) else None), nl=False)
    return ExitStatus.PASSED
