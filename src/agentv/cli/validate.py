"""`agentv validate`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agentv.app.validate import validate
from agentv.cli.printing import print_diagnostics
from agentv.errors import ExitStatus, LoadError
from agentv.reports.paths import shown_from
from agentv.reports.text import safe


@click.command("validate", epilog="Example: agentv validate evals/ --strict")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option("--fix", is_flag=True, help="First rewrite older spellings to the canonical ones; comments stay.")
@click.option("--json", "as_json", is_flag=True, help="Diagnostics as JSON on stdout.")
def command(paths: tuple[str, ...], *, strict: bool, fix: bool, as_json: bool) -> int:
    """Check eval files: every mistake in every file, in one pass. Nothing is run.

    Exit status 2 if anything is wrong.
    """
    if fix:
        _fix(paths)
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


def _fix(paths: tuple[str, ...]) -> None:
    from agentv.app.fix import fix

    try:
        fixed = fix(paths, dict(os.environ))
    except LoadError:
        click.echo("nothing was rewritten: what a file with errors means cannot be known", err=True)
        return
    for path, count in fixed.files.items():
        plural = "" if count == 1 else "s"
        click.echo(f"rewrote {count} older spelling{plural} in {safe(shown_from(path, str(Path.cwd())))}", err=True)
    if fixed.left:
        count = len(fixed.left)
        reason = "rewritten alone it would mean something else, or it stands in no YAML block"
        click.echo(f"left {count} older spelling{'' if count == 1 else 's'}: {reason}", err=True)
    elif not fixed.files:
        click.echo("nothing to rewrite", err=True)
