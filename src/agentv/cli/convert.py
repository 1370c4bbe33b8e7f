"""`agentv convert`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agentv.cli.printing import print_diagnostics
from agentv.errors import ExitStatus, UsageError
from agentv.reports.text import safe

FORMATS = ("yaml", "jsonl", "csv", "python")


@click.command("convert", epilog="Example: agentv convert evals/refunds.eval.yaml --to jsonl")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", type=click.Choice(FORMATS), help="The format to write; promptfoo's configuration needs none.")
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
def command(source: Path, *, to: str | None, out: Path | None) -> int:
    """Write a suite in another format: the same cases out as in. Comments are lost, nothing is overwritten.

    A suite or cases in Python are made for it: this command runs the project's own code, as `eval` does.

    SOURCE may be promptfoo's configuration: it becomes an eval file. What has no equivalent is listed, and the exit
    status is 1 then.
    """
    from agentv.app.from_promptfoo import from_promptfoo

    converted = from_promptfoo(source, out) if to in (None, "yaml") else None
    if converted is not None:
        print_diagnostics(converted.left)
        _say_written(converted.path)
        done = not converted.left and not _refused(converted.path)
        return ExitStatus.PASSED if done else ExitStatus.FAILED
    if to is None:
        raise UsageError("which format?", f"add --to {', --to '.join(FORMATS[:-1])} or --to {FORMATS[-1]}")
    from agentv.app.convert import convert

    for path in convert(source, to, out, dict(os.environ)):  # type: ignore[arg-type]  # one of FORMATS
        _say_written(path)
    return ExitStatus.PASSED


def _refused(path: Path) -> bool:
    """Say what agentv itself has against a file that was converted: names that it knows and has not built, for one."""
    from agentv.app.validate import validate

    found = [one for one in validate((str(path),), dict(os.environ)) if one.severity == "error"]
    print_diagnostics(found)
    return bool(found)


def _say_written(path: Path) -> None:
    click.echo(f"wrote {safe(str(path))}", err=True)
