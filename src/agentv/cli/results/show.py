"""`agentv results show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agentv.cli.results.choosing import choosing, chosen_of, selection_of
from agentv.errors import ExitStatus

SHOWN = 20
"""Trials that people are shown unless they ask for more."""


@click.command("show", epilog="Example: agentv results show last --failed")
@click.argument("run", metavar="[RUN]", default="last")
@choosing
@click.option("--limit", type=click.IntRange(0), metavar="N", help=f"At most N trials; {SHOWN} without --json.")
@click.option("--full", is_flag=True, help="Long answers and evidence to their end.")
@click.option("--partial", is_flag=True, help="Take a run that is still being written as far as it is.")
@click.option("--json", "as_json", is_flag=True, help="run.json, summary.json and the rows as one object on stdout.")
def command(run: str, limit: int | None, *, full: bool, partial: bool, as_json: bool, **chosen: Any) -> int:
    """Show the trials of a run, the last one unless RUN names another.

    For each its answer, every check with its evidence, what the judge said, and the difference to the reference answer.

    Of several options of one kind any is enough, of several kinds each must hold.
    """
    from agentv.app.results.listing import listed_run
    from agentv.app.results.stored import open_run

    found = open_run(run, doing="show", partial=partial)
    wanted = limit if limit is not None or as_json else SHOWN
    picked = chosen_of(found, selection_of(chosen), wanted)
    if as_json:
        from agentv.app.exports import export_text

        for piece in export_text(picked.run, ".json"):
            click.echo(piece, nl=False)
        return ExitStatus.PASSED
    from agentv.cli.prompt.looks import width_and_color
    from agentv.reports.stored_run import Looks, render_head, render_rest, render_trial

    _, color = width_and_color()
    looks = Looks(here=str(Path.cwd()), color=color, full=full)
    click.echo(render_head(listed_run(found.path), looks), color=color)
    for result in picked.run.results():
        click.echo(f"\n{render_trial(result, looks)}", color=color)
    if rest := render_rest(picked.counts, picked.wanted):
        click.echo(f"\n{rest}")
    return ExitStatus.PASSED
