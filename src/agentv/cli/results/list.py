"""`agentv results list`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.errors import ExitStatus


@click.command("list", epilog="Example: agentv results list --limit 5")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", default=20, show_default=True, help="Number of runs to list."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(*, limit: int, as_json: bool) -> int:
    """List the runs of this repository, newest first, with their outcome and cost.

    Lists the runs in .agentv/results. To show a run that was written elsewhere with --out, name its directory.
    """
    from agentv.app.results.listing import listed_runs
    from agentv.cli.printing import width_and_color
    from agentv.reports.commands.runs import render_runs, runs_json
    from agentv.reports.text.paths import shown_from

    here = str(Path.cwd())
    listing = listed_runs(limit)
    runs = list(listing.runs)
    if as_json:
        click.echo(runs_json(runs, here=here))
    elif not runs:
        click.echo(f"no runs in {shown_from(listing.directory, here)}")
    else:
        width, color = width_and_color()
        click.echo(render_runs(runs, listing.total, width=width, color=color), color=color)
    return ExitStatus.PASSED
