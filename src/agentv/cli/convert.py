"""`agentv convert`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agentv.cli.printing import print_diagnostics
from agentv.errors import ExitStatus, UsageError
from agentv.reports.text.escaping import safe

FORMATS = ("yaml", "jsonl", "csv", "python")


@click.command("convert", epilog="Example: agentv convert evals/refunds.eval.yaml --to jsonl")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", type=click.Choice(FORMATS), help="Output format. Not needed for a promptfoo configuration.")
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="Output file.")
@click.option("--allow-outside", is_flag=True, help="Allow files outside the repository.")
def command(source: Path, *, to: str | None, out: Path | None, allow_outside: bool) -> int:
    """Write a suite in another format. The cases stay the same; comments are lost. Never overwrites a file.

    If the suite or its cases are written in Python, this command runs that code, as `eval` does.

    SOURCE may be a promptfoo configuration, which becomes an eval file. Lists what has no equivalent; the exit status
    is then 1.
    """
    from agentv.app.authored.data_trust import SAID
    from agentv.app.authored.from_promptfoo import from_promptfoo

    converted = from_promptfoo(source, out, allow_outside=allow_outside) if to in (None, "yaml") else None
    if converted is not None:
        print_diagnostics(converted.left)
        _say_written(converted.path)
        if converted.trusts:
            click.echo(f"  {SAID}", err=True)
        done = not converted.left and not _refused(converted.path, allow_outside=allow_outside)
        return ExitStatus.PASSED if done else ExitStatus.FAILED
    if to is None:
        raise UsageError("which format?", f"add --to {', --to '.join(FORMATS[:-1])} or --to {FORMATS[-1]}")
    from agentv.app.authored.convert import convert

    written = convert(source, to, out, dict(os.environ), allow_outside=allow_outside)  # type: ignore[arg-type]  # one of FORMATS
    for path in written:
        _say_written(path)
        if to == "csv" and path.suffix == ".yaml" and "trust_data: true" in path.read_text(encoding="utf-8"):
            click.echo(f"  {SAID}", err=True)
    return ExitStatus.PASSED


def _refused(path: Path, *, allow_outside: bool) -> bool:
    """Say what agentv itself has against a file that was converted: names that it knows and has not built, for one."""
    from agentv.app.authored.validate import validate

    found = [
        one for one in validate((str(path),), dict(os.environ), allow_outside=allow_outside) if one.severity == "error"
    ]
    print_diagnostics(found)
    return bool(found)


def _say_written(path: Path) -> None:
    click.echo(f"wrote {safe(str(path))}", err=True)
