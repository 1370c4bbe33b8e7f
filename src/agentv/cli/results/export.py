"""`agentv results export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agentv.cli.lazy import Registered, runs
from agentv.cli.results.choosing import choosing, chosen_of, selection_of
from agentv.errors import ExitStatus, UsageError
from agentv.registry.extensions import TRACE_FORMATS
from agentv.user_code.plugin_tables import added_value


@click.command("export", epilog="Example: agentv results export last --failed -o failed.csv")
@click.argument("run", metavar="[RUN]", default="last", shell_complete=runs)
@click.option(
    "-o", "--out", multiple=True, metavar="FILE", help="Output file. Its suffix selects the format. Repeatable."
)
@click.option("--format", "form", type=Registered(TRACE_FORMATS, ()), help="Export traces in this format instead.")
@choosing
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Maximum number of trials.")
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
def command(
    run: str, out: tuple[str, ...], form: str | None, limit: int | None, *, partial: bool, **chosen: Any
) -> int:
    """Export the trials of a run (default: the last) to files.

    FILE ends in .jsonl, .json, .csv, .xml (JUnit), .md or .html. Its totals are those of the whole run.

    With --format, the traces are exported: otlp to .json or .pb (protobuf), atif to .json (one trial) or .jsonl.
    """
    from agentv.app.exports import check_export, write_export
    from agentv.app.results.stored import open_run
    from agentv.model.run.selection import Selection
    from agentv.model.values.formatting import plural
    from agentv.reports.text.escaping import one_line

    if not out:
        raise UsageError("no output file", "give -o FILE, such as -o rows.csv")
    found = open_run(run, action="export", partial=partial)
    for file in out if form is None else ():
        check_export(Path(file), found.path)
    if not found.index.exists() or not found.index.stat().st_size:
        raise UsageError(f"nothing to export: no trial of the run {found.run_id} has finished")
    selection, number = selection_of(chosen), None
    if limit is not None or selection != Selection():
        picked = chosen_of(found, selection, limit)
        found, number = picked.run, picked.wanted
    if form is not None:
        for line in added_value(TRACE_FORMATS, form)(found, [Path(file) for file in out]):
            click.echo(line, err=True)
        return ExitStatus.PASSED
    for file in out:
        write_export(found, Path(file))
        click.echo(f"wrote {one_line(file)}" + (f": {plural(number, 'trial')}" if number is not None else ""), err=True)
    return ExitStatus.PASSED
