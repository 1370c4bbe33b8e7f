"""`agentv validate`."""

from __future__ import annotations

import os

import click

from agentv.app.validate import validate
from agentv.cli.printing import print_diagnostics
from agentv.errors import ExitStatus


@click.command("validate", epilog="Example: agentv validate evals/ --strict")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option("--json", "as_json", is_flag=True, help="Diagnostics as JSON on stdout.")
def command(paths: tuple[str, ...], *, strict: bool, as_json: bool) -> int:
    """Check eval files: every mistake in every file, in one pass. Nothing is run.

    Exit status 2 if anything is wrong.
    """
    found = validate(paths, dict(os.environ))
    if as_json:
        from agentv.reports.diagnostics import diagnostics_json

        click.echo(diagnostics_json(found))
    else:
        print_diagnostics(found)
    failing = {"error", "warning"} if strict else {"error"}
    wrong = any(one.severity in failing for one in found)
    if not wrong and not as_json:
        click.echo("valid", err=True)
    return ExitStatus.WRONG if wrong else ExitStatus.PASSED
