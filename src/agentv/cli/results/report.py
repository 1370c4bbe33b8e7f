"""`agentv results report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentv.cli.lazy import runs
from agentv.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from agentv.app.exports import Exported

_SUFFIXES = {"html": ".html", "md": ".md", "junit": ".xml"}
"""Option → the format that it asks for."""


@click.command("report", epilog="Example: agentv results report last --md summary.md --junit junit.xml")
@click.argument("run", metavar="[RUN]", default="last", shell_complete=runs)
@click.option("--html", metavar="FILE", help="Write a self-contained HTML page.")
@click.option("--md", metavar="FILE", help="Write Markdown that fits into a pull request comment.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML for CI servers.")
@click.option("--against", metavar="RUN", help="With --html: compare each answer with that of an earlier run.")
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
def command(run: str, against: str | None, *, partial: bool, **files: str | None) -> int:
    """Write reports of a run (default: the last).

    Use - as FILE to write to stdout.
    """
    from agentv.app.exports import Exported, write_as
    from agentv.app.results.stored import open_run
    from agentv.reports.text.escaping import one_line

    wanted = {_SUFFIXES[name]: file for name, file in files.items() if file is not None}
    if not wanted:
        raise UsageError("no report given", "give --html FILE, --md FILE or --junit FILE")
    if len(set(wanted.values())) < len(wanted):
        raise UsageError("two reports use the same file", "give each its own FILE")
    if against is not None and ".html" not in wanted:
        raise UsageError("--against requires --html", "add --html FILE, or use `agentv compare`")
    found = open_run(run, action="report", partial=partial)
    if next(found.results(), None) is None and not Exported(found).totals().is_empty_shard:
        raise UsageError(f"nothing to report: no trial of the run {found.run_id} has finished")
    earlier = open_run(against, action="compare with", partial=partial) if against is not None else None
    exported = Exported(found, against=earlier)
    for suffix, file in wanted.items():
        if file == "-":
            _print(suffix, exported)
        else:
            write_as(suffix, exported, Path(file))
            click.echo(f"wrote {one_line(file)}", err=True)
    return ExitStatus.PASSED


def _print(suffix: str, exported: Exported) -> None:
    from agentv.app.exports import rendered

    for piece in rendered(suffix, exported):
        click.echo(piece, nl=False)
