"""`agentv validate`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from agentv.app.excerpts import source_of
from agentv.app.validate import Checked, Validation
from agentv.cli.formats import chosen_format, format_options, print_as
from agentv.errors import Diagnostic, ExitStatus, LoadError
from agentv.reports.paths import shown_from
from agentv.reports.text import safe


@click.command("validate", epilog="Example: agentv validate evals/ --strict")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option("--fix", is_flag=True, help="First rewrite older spellings to the canonical ones; comments stay.")
@format_options("Diagnostics as JSON on stdout; the same as --format json.")
@click.option("-q", "--quiet", is_flag=True, help="Only how many there are.")
def command(paths: tuple[str, ...], *, strict: bool, fix: bool, quiet: bool, **formats: Any) -> int:
    """Check eval files: every mistake in every file, in one pass. Nothing is run.

    A directory is searched for eval files. A template, a sidecar, `.agentv/targets.yaml` and `.agentv/config.yaml` are
    checked as what they are when they are given by name.

    Exit status 2 if anything is wrong.
    """
    form = chosen_format(formats["format_name"], as_json=formats["as_json"])
    if fix:
        _fix(paths)
    checked = []
    for one in Validation(paths, dict(os.environ)):
        checked.append(one)
        if form == "text" and not quiet:
            _print_file(one)
    found = [one for file in checked for one in file.diagnostics]
    if form != "text":
        print_as(found, form)
    failing = {"error", "warning"} if strict else {"error"}
    wrong = any(one.severity in failing for one in found)
    if form == "text":
        click.echo(_summary(checked, found, wrong=wrong), err=True)
    return ExitStatus.WRONG if wrong else ExitStatus.PASSED


def _print_file(one: Checked) -> None:
    """What is wrong with a file, as soon as it is known."""
    if one.diagnostics:
        from agentv.reports.diagnostics import render_diagnostics

        click.echo(render_diagnostics(one.diagnostics, source_of, counted=False) + "\n", err=True)


def _summary(checked: Sequence[Checked], found: Sequence[Diagnostic], *, wrong: bool) -> str:
    """`3 errors, 1 warning in 2 of 14 files`; last `valid` where nothing fails."""
    from agentv.reports.diagnostics import count_of

    files = f"{len(checked)} file{'' if len(checked) == 1 else 's'}"
    touched = sum(bool(one.diagnostics) for one in checked)
    counted = f"{count_of(found)} in {touched} of {files}" if found else ""
    if wrong:
        return counted
    return f"{counted}\nvalid" if counted else "valid" if len(checked) == 1 else f"{files}: valid"


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
