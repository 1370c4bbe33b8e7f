"""`agentv results export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agentv.cli.results.choosing import choosing, chosen_of, selection_of
from agentv.errors import ExitStatus, UsageError


@click.command("export", epilog="Example: agentv results export last --failed -o failed.csv")
@click.argument("run", metavar="[RUN]", default="last")
@click.option("-o", "--out", multiple=True, metavar="FILE", help="The file; its suffix says the format. Repeatable.")
@choosing
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N trials.")
@click.option("--partial", is_flag=True, help="Take a run that is still being written as far as it is.")
def command(run: str, out: tuple[str, ...], limit: int | None, *, partial: bool, **chosen: Any) -> int:
    """Write the trials of a run, the last one unless RUN names another, to files.

    FILE ends in .jsonl, .json, .csv, .xml (JUnit), .md or .html. Totals in it are those of the whole run.
    """
    from agentv.app.exports import check_export, write_export
    from agentv.app.results.stored import open_run
    from agentv.model.selection import Selection
    from agentv.reports.text import one_line
    from agentv.reports.totals import plural

    if not out:
        raise UsageError("no file is named to export to", "give -o FILE, such as -o rows.csv")
    found = open_run(run, doing="export", partial=partial)
    for file in out:
        check_export(Path(file), found.path)
    if not found.index.exists() or not found.index.stat().st_size:
        raise UsageError(f"there is nothing to export: no trial of the run {found.run_id} has ended")
    selection, number = selection_of(chosen), None
    if limit is not None or selection != Selection():
        picked = chosen_of(found, selection, limit)
        found, number = picked.run, picked.wanted
    for file in out:
        write_export(found, Path(file))
        click.echo(f"wrote {one_line(file)}" + (f": {plural(number, 'trial')}" if number is not None else ""), err=True)
    return ExitStatus.PASSED
