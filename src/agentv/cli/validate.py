"""`agentv validate`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from agentv.app.authored.validate import Checked, Validation, fix, source_of
from agentv.cli.formats import chosen_format, format_options, print_as
from agentv.cli.printing import paths_of_project, takes_color
from agentv.cli.values import files
from agentv.errors import Diagnostic, ExitStatus, LoadError
from agentv.model.values.formatting import plural
from agentv.reports.diagnostics import count_of, render_diagnostics
from agentv.reports.text import safe, shown_from


@click.command("validate", epilog="Example: agentv validate evals/ --strict")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=files)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option(
    "--fix", is_flag=True, help="Rewrite older spellings to the canonical ones before checking. Comments are kept."
)
@click.option("--allow-outside", is_flag=True, help="Allow files outside the repository.")
@click.option(
    "--trust-data", is_flag=True, help="Allow rows of data files to run code and to read environment variables."
)
@format_options("Print diagnostics to stdout as JSON. Same as --format json.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the number of diagnostics.")
def command(paths: tuple[str, ...], *, strict: bool, fix: bool, quiet: bool, **options: Any) -> int:
    """Check eval files and report every mistake in every file. Runs nothing.

    Without a PATH, checks the files that match `eval_patterns` in .agentv/config.yaml, or else those in evals/.

    Searches directories for eval files. Checks templates, sidecar files, `.agentv/targets.yaml` and
    `.agentv/config.yaml` if you name them.

    Exit status: 2 if any file has an error.
    """
    form = chosen_format(options.pop("format_name"), as_json=options.pop("as_json"))
    if not paths:
        paths = paths_of_project(allow_outside=bool(options["allow_outside"]))
    if fix:
        _fix(paths)
    checked = []
    for one in Validation(paths, dict(os.environ), **options):
        checked.append(one)
        if form == "text" and not quiet:
            if one.note:
                click.echo(f"note: {safe(one.note)}", err=True)
            if one.diagnostics:
                color = takes_color(sys.stderr)
                shown = render_diagnostics(one.diagnostics, source_of, counted=False, color=color)
                click.echo(f"{shown}\n", err=True, color=color)
    found = [one for file in checked for one in file.diagnostics]
    if form != "text":
        print_as(found, form)
    failing = {"error", "warning"} if strict else {"error"}
    wrong = any(one.severity in failing for one in found)
    if form == "text":
        click.echo(_summary(checked, found, wrong=wrong), err=True)
    return ExitStatus.WRONG if wrong else ExitStatus.PASSED


def _summary(checked: Sequence[Checked], found: Sequence[Diagnostic], *, wrong: bool) -> str:
    """Return the summary: `3 errors, 1 warning in 2 of 14 files`, and `valid` if nothing fails."""
    named = [one for one in checked if one.path]  # problems of plugins have no path
    files = plural(len(named), "file")
    touched = sum(bool(one.diagnostics) for one in named)
    counted = (f"{count_of(found)} in {touched} of {files}" if touched else count_of(found)) if found else ""
    if wrong:
        return counted
    return f"{counted}\nvalid" if counted else "valid" if len(named) == 1 else f"{files}: valid"


def _fix(paths: tuple[str, ...]) -> None:
    try:
        fixed = fix(paths, dict(os.environ))
    except LoadError:
        click.echo("nothing was rewritten: fix the errors first", err=True)
        return
    for path, count in fixed.files.items():
        click.echo(f"rewrote {plural(count, 'older spelling')} in {safe(shown_from(path, str(Path.cwd())))}", err=True)
    if fixed.left:
        count = len(fixed.left)
        reason = "rewriting would change the meaning, or the key is not in a YAML block"
        click.echo(f"left {plural(count, 'older spelling')}: {reason}", err=True)
    elif not fixed.files:
        click.echo("nothing to rewrite", err=True)
