"""`agentv trace show`."""

from __future__ import annotations

import click

from agentv.cli.completion.values import runs
from agentv.errors import ExitStatus


@click.command("show", epilog="Example: agentv trace show last refund --full")
@click.argument("run", metavar="RUN", shell_complete=runs)
@click.argument("case", metavar="CASE")
@click.option("--target", metavar="NAME", help="Show the trials of this target only.")
@click.option("--variant", metavar="NAME", help="Show the trials of this variant only.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Show this sample only.")
@click.option("--full", is_flag=True, help="Do not shorten messages, arguments and results.")
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
@click.option("--json", "as_json", is_flag=True, help="Print each trace.json to stdout, one a line.")
def command(run: str, case: str, *, full: bool, partial: bool, as_json: bool, **chosen: str | int | None) -> int:
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
