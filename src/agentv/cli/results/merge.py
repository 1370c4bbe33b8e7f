"""`agentv results merge`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.cli.lazy import runs
from agentv.errors import ExitStatus


@click.command("merge", epilog="Example: agentv results merge shard-1 shard-2 shard-3")
@click.argument("named", metavar="RUN...", nargs=-1, required=True, shell_complete=runs)
@click.option("-o", "--out", metavar="DIR", help="Results directory (default: a new one in .agentv/results).")
@click.option("--partial", is_flag=True, help="Merge although shards are missing or did not finish.")
def command(named: tuple[str, ...], out: str | None, *, partial: bool) -> int:
    """Make one run of the shards of a run (`agentv eval --shard I/N`).

    All shards must be of the same files and settings. The new run has their rows, answers, totals and artifacts; the
    shards stay as they are.

    Exit status: 0 the run is written; 2 the runs cannot be merged.
    """
    from agentv.app.results.listing import compared_run
    from agentv.app.results.merging import merge_runs
    from agentv.cli.printing import width_and_color
    from agentv.reports.commands.stored_run import ShowOptions, render_head

    merged = merge_runs(named, out, partial=partial)
    for note in merged.notes:
        click.echo(f"warning: {note}", err=True)
    width, color = width_and_color()
    options = ShowOptions(here=str(Path.cwd()), color=color, width=width)
    click.echo(render_head(compared_run(merged.path), options), color=color)
    return ExitStatus.PASSED
