"""`agentv trace …`: what agents did in a stored run."""

from __future__ import annotations

from typing import Any

import click

from agentv.cli.lazy import LazyCommands
from agentv.cli.results.trials import choosing, chosen_of, selection_of
from agentv.cli.values import runs
from agentv.errors import ExitStatus

COMMANDS = {
    "show": "agentv.extensions.agents.commands.trace:show",
    "stats": "agentv.extensions.agents.commands.trace:stats",
}


@click.group("trace", cls=LazyCommands, places=COMMANDS, epilog="Example: agentv trace show last refund")
def group() -> None:
    """Inspect the traces of a run: messages, tool calls, tokens, cost and errors.

    A RUN is a run id, its directory, or `last`.
    """


@click.command("show", epilog="Example: agentv trace show last refund --full")
@click.argument("run", metavar="RUN", shell_complete=runs)
@click.argument("case", metavar="CASE")
@click.option("--target", metavar="NAME", help="Show the trials of this target only.")
@click.option("--variant", metavar="NAME", help="Show the trials of this variant only.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Show this sample only.")
@click.option("--full", is_flag=True, help="Do not shorten messages, arguments and results.")
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
@click.option("--json", "as_json", is_flag=True, help="Print each trace.json to stdout, one a line.")
def show(run: str, case: str, *, full: bool, partial: bool, as_json: bool, **chosen: str | int | None) -> int:
    """Show what the agent did in the trials of a case: a tree of its steps.

    Each step has the time at which it began, how long it took, and what it used. Steps of a sub-agent are below the
    call that started it.

    Exit status 2 if the run has no such case, 3 if a trace cannot be read.
    """
    from agentv.app.results.stored import open_run
    from agentv.cli.printing import width_and_color
    from agentv.extensions.agents.reports.traces import TraceOptions, render_trace
    from agentv.extensions.agents.stored_traces.stored import trials_of_case
    from agentv.model.values.response import Failure
    from agentv.reports.text.escaping import one_line

    found = trials_of_case(open_run(run, action="show", partial=partial), case, chosen)
    width, color = width_and_color()
    status = ExitStatus.PASSED
    for place, trial in enumerate(found):
        trace = trial.trace
        if isinstance(trace, Failure):
            click.echo(f"error: {one_line(trial.name)}: {one_line(trace.message)}", err=True)
            status = ExitStatus.ERRORED
        elif as_json:
            from agentv.model.values.trace_document import one_line_document

            click.echo(one_line_document(trace))
        else:
            text = render_trace(trial.name, trace, TraceOptions(width, color=color, full=full))
            click.echo(("\n" if place else "") + text, color=color)
    return status


@click.command("stats", epilog="Example: agentv trace stats last --target claude")
@click.argument("run", metavar="[RUN]", default="last", shell_complete=runs)
@choosing
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def stats(run: str, *, partial: bool, as_json: bool, **chosen: Any) -> int:
    """Print figures over the trials of a run (default: the last).

    Mean and percentiles of score, time, cost, tokens and tool calls.

    A trial that does not report a figure is left out of it. The tool calls of a partial trace are not counted.
    Percentiles are interpolated linearly.

    Options of the same kind are ORed; different kinds are ANDed.
    """
    from agentv.app.results.stored import open_run
    from agentv.cli.printing import width_and_color
    from agentv.extensions.agents.reports.traces import figures_json, render_figures
    from agentv.extensions.agents.stored_traces.stored import figures_of, traced_trials
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
