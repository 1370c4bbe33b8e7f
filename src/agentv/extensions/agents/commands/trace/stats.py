"""`agentv trace stats`."""

from __future__ import annotations

from typing import Any

import click

from agentv.cli.completion.values import runs
from agentv.cli.results.choosing import choosing, chosen_of, selection_of
from agentv.errors import ExitStatus


@click.command("stats", epilog="Example: agentv trace stats last --target claude")
@click.argument("run", metavar="[RUN]", default="last", shell_complete=runs)
@choosing
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(run: str, *, partial: bool, as_json: bool, **chosen: Any) -> int:
    """Print figures over the trials of a run (default: the last).

    Mean and percentiles of score, time, cost, tokens and tool calls.

    A trial that does not report a figure is left out of it. The tool calls of a partial trace are not counted.
    Percentiles are interpolated linearly.

    Options of the same kind are ORed; different kinds are ANDed.
    """
    from agentv.app.results.stored import open_run
    from agentv.cli.printing import width_and_color
    from agentv.extensions.agents.reports.traces import figures_json, render_figures
    from agentv.extensions.agents.stored_traces.figures import figures_of
    from agentv.extensions.agents.stored_traces.stored import traced_trials
    from agentv.model.run.selection import Selection
    from agentv.reports.text.escaping import one_line

    found = open_run(run, action="show", partial=partial)
    selection = selection_of(chosen)
    if selection != Selection():
        found = chosen_of(found, selection, None).run
    figures = figures_of(traced_trials(found))
    width, color = width_and_color()
    click.echo(figures_json(figures) if as_json else render_figures(figures, width, color=color), color=color)
    for text in figures.unread:
        click.echo(f"error: {one_line(text)}", err=True)
    return ExitStatus.ERRORED if figures.unread else ExitStatus.PASSED
