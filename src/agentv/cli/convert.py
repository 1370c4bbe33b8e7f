"""`agentv convert`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agentv.errors import ExitStatus
from agentv.reports.text import safe

FORMATS = ("yaml", "jsonl", "python")


@click.command("convert", epilog="Example: agentv convert evals/refunds.eval.yaml --to jsonl")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", type=click.Choice(FORMATS), required=True, help="The format to write.")
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
def command(source: Path, *, to: str, out: Path | None) -> int:
    """Write a suite in another format: the same cases out as in. Comments are lost, nothing is overwritten.

    A suite or cases in Python are made for it: this command runs the project's own code, as `eval` does.
    """
    from agentv.app.convert import convert

    for path in convert(source, to, out, dict(os.environ)):  # type: ignore[arg-type]  # one of FORMATS
        click.echo(f"wrote {safe(str(path))}", err=True)
    return ExitStatus.PASSED
