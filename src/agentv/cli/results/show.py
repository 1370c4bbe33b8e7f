"""`agentv results show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.lazy import runs
from agentv.cli.results.choosing import choosing, chosen_of, selection_of
from agentv.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from agentv.app.results.stored import StoredRun
    from agentv.model.run.selection import Selection

SHOWN = 20
"""Trials, or cases with whole answers, that people are shown unless they ask for more."""

LINES = 100
"""Cases of `--matrix` that people are shown unless they ask for more."""


@click.command("show", epilog="Example: agentv results show last --failed")
@click.argument("run", metavar="[RUN]", default="last", shell_complete=runs)
@choosing
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    help=f"At most N trials ({SHOWN}; all with --json), or cases with --matrix ({LINES}).",
)
@click.option("--matrix", is_flag=True, help="Show a line for each case, a column for each prompt, target and variant.")
@click.option("--answers", is_flag=True, help="With --matrix: show whole answers side by side.")
@click.option("--different", is_flag=True, help="With --matrix: only cases whose columns disagree.")
@click.option("--full", is_flag=True, help="Do not shorten answers and evidence.")
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print run.json, summary.json and the rows to stdout as one JSON object."
)
def command(
    run: str, limit: int | None, *, partial: bool, as_json: bool, matrix: bool, full: bool, **chosen: Any
) -> int:
    """Show the trials of a run (default: the last), failures first.

    Shows each answer, every check with its evidence, what the judge said, and the difference from the reference answer.
    With --matrix, shows a line for each case, in the order of the eval files: its variables, and the verdict, score and
    beginning of each answer. --failed and the like then select cases with such a trial.

    Options of the same kind are ORed; different kinds are ANDed.
    """
    answers, different = chosen.pop("answers"), chosen.pop("different")
    if (answers or different) and not matrix:
        raise UsageError(f"--{'answers' if answers else 'different'} requires --matrix", "add --matrix")
    if matrix and as_json:
        raise UsageError("--matrix and --json conflict", "--json prints every row; use one of them")
    from agentv.app.labelled_runs import shown_run
    from agentv.app.results.stored import open_run

    found = open_run(run, action="show", partial=partial)
    if matrix:
        _show_matrix(found, selection_of(chosen), limit, answers=answers or full, different=different, full=full)
        return ExitStatus.PASSED
    wanted = limit if limit is not None or as_json else SHOWN
    picked = chosen_of(found, selection_of(chosen), wanted, failures_first=not as_json)
    if as_json:
        from agentv.app.exports import Exported, rendered

        for piece in rendered(".json", Exported(picked.run)):
            click.echo(piece, nl=False)
        return ExitStatus.PASSED
    from agentv.cli.printing import width_and_color
    from agentv.reports.commands.stored_run import ShowOptions, render_head, render_rest, render_trial

    _, color = width_and_color()
    options = ShowOptions(here=str(Path.cwd()), color=color, full=full)
    click.echo(render_head(shown_run(found), options), color=color)
    for result in picked.run.results():
        click.echo(f"\n{render_trial(result, options)}", color=color)
    if rest := render_rest(picked.counts, picked.wanted):
        click.echo(f"\n{rest}")
    return ExitStatus.PASSED


def _show_matrix(
    run: StoredRun, selection: Selection, limit: int | None, *, answers: bool, different: bool, full: bool
) -> None:
    from agentv.app.labelled_runs import shown_run
    from agentv.app.results.selecting import side_by_side
    from agentv.cli.printing import width_and_color
    from agentv.reports.commands.answer_grid import render_grid
    from agentv.reports.commands.side_by_side import render_case, render_rest
    from agentv.reports.commands.stored_run import ShowOptions, render_head

    width, color = width_and_color()
    options = ShowOptions(here=str(Path.cwd()), color=color, full=full, width=width)
    most = limit if limit is not None else SHOWN if answers else LINES
    found = side_by_side(run, selection, most, different=different)
    click.echo(render_head(shown_run(run), options), color=color)
    if answers:
        for case in found.cases:
            click.echo(f"\n{render_case(case, found, options)}", color=color)
    elif found.cases:
        click.echo(f"\n{render_grid(found, options)}", color=color)
    if rest := render_rest(found):
        click.echo(f"\n{rest}")
