"""`agentv convert`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from agentv.errors import ExitStatus, UsageError
from agentv.reports.text.escaping import safe

FORMATS = ("yaml", "jsonl", "csv", "python")


@click.command("convert", epilog="Example: agentv convert evals/refunds.eval.yaml --to jsonl")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", type=click.Choice(FORMATS), help="Output format. Not needed for a promptfoo configuration.")
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="Output file.")
@click.option("--allow-outside", is_flag=True, help="Allow files outside the repository.")
@click.option(
    "--missing-vars",
    type=click.Choice(["error", "empty"]),
    default="error",
    help="For a promptfoo configuration: what a variable is that a test does not set. promptfoo: empty.",
)
@click.option("--json", "as_json", is_flag=True, help="For a promptfoo configuration: print the findings as JSON.")
def command(source: Path, *, to: str | None, out: Path | None, **options: Any) -> int:
    """Write a suite in another format. The cases stay the same; comments are lost. Never overwrites a file.

    If the suite or its cases are written in Python, this command runs that code, as `eval` does.

    SOURCE may be a promptfoo configuration, which becomes an eval file with its comments. Lists what has no
    equivalent; the exit status is 1 if that could change a verdict. If functions return its tests, it runs them.
    """
    from agentv.app.authored.data_trust import SAID
    from agentv.app.authored.from_promptfoo import from_promptfoo

    allow_outside = options["allow_outside"]
    missing_empty = options["missing_vars"] == "empty"
    converted = None
    if to in (None, "yaml"):
        converted = from_promptfoo(source, out, allow_outside=allow_outside, missing_empty=missing_empty)
    if converted is not None:
        from agentv.cli.promptfoo_findings import report_converted

        return report_converted(converted, allow_outside=allow_outside, as_json=options["as_json"])
    if to is None:
        raise UsageError("which format?", f"add --to {', --to '.join(FORMATS[:-1])} or --to {FORMATS[-1]}")
    from agentv.app.authored.convert import convert

    written = convert(source, to, out, dict(os.environ), allow_outside=allow_outside)  # type: ignore[arg-type]  # one of FORMATS
    for path in written:
        _say_written(path)
        if to == "csv" and path.suffix == ".yaml" and "trust_data: true" in path.read_text(encoding="utf-8"):
            click.echo(f"  {SAID}", err=True)
    return ExitStatus.PASSED


def _say_written(path: Path) -> None:
    click.echo(f"wrote {safe(str(path))}", err=True)
