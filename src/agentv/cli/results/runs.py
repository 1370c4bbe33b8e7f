"""`agentv results list`, `merge`, `pin` and `delete`: whole runs."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentv.cli.printing import width_and_color
from agentv.cli.values import runs
from agentv.errors import ExitStatus, UsageError
from agentv.model.values.formatting import plural

if TYPE_CHECKING:
    from agentv.app.results.deleting import SelectedRuns


@click.command("list", epilog="Example: agentv results list --limit 5")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", default=20, show_default=True, help="Number of runs to list."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def list_command(*, limit: int, as_json: bool) -> int:
    """List the runs of this repository, newest first, with their outcome and cost.

    Lists the runs in .agentv/results. To show a run that was written elsewhere with --out, name its directory.
    """
    from agentv.app.results.listing import listed_runs
    from agentv.reports.commands.runs import render_runs, runs_json
    from agentv.reports.text.escaping import shown_from

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


@click.command("merge", epilog="Example: agentv results merge shard-1 shard-2 shard-3")
@click.argument("named", metavar="RUN...", nargs=-1, required=True, shell_complete=runs)
@click.option("-o", "--out", metavar="DIR", help="Results directory (default: a new one in .agentv/results).")
@click.option("--partial", is_flag=True, help="Merge although shards are missing or did not finish.")
def merge_command(named: tuple[str, ...], out: str | None, *, partial: bool) -> int:
    """Make one run of the shards of a run (`agentv eval --shard I/N`).

    All shards must be of the same files and settings. The new run has their rows, answers, totals and artifacts; the
    shards stay as they are.

    Exit status: 0 the run is written; 2 the runs cannot be merged.
    """
    from agentv.app.results.listing import compared_run
    from agentv.app.results.merging import merge_runs
    from agentv.reports.commands.stored_run import ShowOptions, render_head

    merged = merge_runs(named, out, partial=partial)
    for note in merged.notes:
        click.echo(f"warning: {note}", err=True)
    width, color = width_and_color()
    options = ShowOptions(here=str(Path.cwd()), color=color, width=width)
    click.echo(render_head(compared_run(merged.path), options), color=color)
    return ExitStatus.PASSED


@click.command("pin", epilog="Example: agentv results pin last")
@click.argument("run", metavar="RUN", shell_complete=runs)
@click.option("--remove", is_flag=True, help="Remove the pin.")
def pin_command(run: str, *, remove: bool) -> int:
    """Pin a run as the baseline of its suites and targets in `agentv trend`.

    The newest pin counts. `results delete --older-than` and `--keep` keep pinned runs.
    """
    from agentv.app.results.deleting import pin
    from agentv.reports.text.escaping import one_line

    found = one_line(pin(run, remove=remove))
    click.echo(f"{found} is no longer pinned" if remove else f"pinned {found}: trend compares later runs with it")
    return ExitStatus.PASSED


_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_MEGABYTE = 1_000_000


def _age(ctx: click.Context, param: click.Parameter, value: str | None) -> timedelta | None:
    """`30d`, `12h`, `2w`; a number alone is of days."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})([hdw]?)", value)
    if found is None:
        raise click.BadParameter(f"'{value}' is not an age; write 12h, 30d or 4w", ctx, param)
    return timedelta(**{_UNITS[found[2] or "d"]: int(found[1])})


@click.command("delete", epilog="Example: agentv results delete --older-than 30d --keep 10")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=runs)
@click.option(
    "--older-than", callback=_age, metavar="AGE", help="Delete runs that started longer ago, such as 12h, 30d or 4w."
)
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the newest N runs.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete_command(runs: tuple[str, ...], older_than: timedelta | None, keep: int | None, *, yes: bool) -> int:
    """Delete runs: those you name, or old ones of this repository.

    Asks for confirmation. Deletes only files that agentv wrote, and no run that is still being written. With both
    options, a run must be older than AGE and not among the newest N.
    """
    from agentv.app.results.deleting import delete, named_runs, runs_by_age
    from agentv.reports.text.escaping import safe

    by_age = older_than is not None or keep is not None
    if bool(runs) == by_age:
        raise UsageError(
            "no runs selected: give run ids, or use --older-than and --keep", "list them with agentv results list"
        )
    selected = named_runs(runs) if runs else runs_by_age(older_than, keep or 0, datetime.now(UTC))
    for why in selected.passed_over:
        click.echo(safe(why), err=True)
    if not selected.paths:
        click.echo("no runs to delete")
        return ExitStatus.ERRORED if selected.refused else ExitStatus.PASSED
    if not yes and not _agreed(selected):
        click.echo("nothing was deleted")
        return ExitStatus.PASSED
    deleted = delete(selected)
    for line in (*deleted.left, *(f"error: {error}" for error in deleted.errors)):
        click.echo(safe(line), err=True)
    click.echo(f"deleted {plural(deleted.runs, 'run')}")
    return ExitStatus.ERRORED if deleted.errors or selected.refused else ExitStatus.PASSED


def _agreed(selected: SelectedRuns) -> bool:
    """Whether the person in front of the terminal says yes.

    Raises:
        UsageError: nobody is there.
    """
    from agentv.reports.commands.runs import render_runs

    question = f"delete {plural(len(selected.paths), 'run')}, {selected.size / _MEGABYTE:.1f} MB?"
    if not sys.stdin.isatty():
        raise UsageError(
            f"cannot ask for confirmation without a terminal: {question}", "use --yes to delete without asking"
        )
    width, color = width_and_color()
    click.echo(render_runs(selected.listed(), len(selected.paths), width=width, color=color), color=color)
    return click.confirm(question, err=True)
