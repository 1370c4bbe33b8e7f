"""`agentv results delete`."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from agentv.cli.lazy import runs
from agentv.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from agentv.app.results.deleting import SelectedRuns

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
def command(runs: tuple[str, ...], older_than: timedelta | None, keep: int | None, *, yes: bool) -> int:
    """Delete runs: those you name, or old ones of this repository.

    Asks for confirmation. Deletes only files that agentv wrote, and no run that is still being written. With both
    options, a run must be older than AGE and not among the newest N.
    """
    from agentv.app.results.deleting import delete, named_runs, runs_by_age
    from agentv.model.values.formatting import plural
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
    from agentv.cli.printing import width_and_color
    from agentv.model.values.formatting import plural
    from agentv.reports.commands.runs import render_runs

    question = f"delete {plural(len(selected.paths), 'run')}, {selected.size / _MEGABYTE:.1f} MB?"
    if not sys.stdin.isatty():
        raise UsageError(
            f"cannot ask for confirmation without a terminal: {question}", "use --yes to delete without asking"
        )
    width, color = width_and_color()
    click.echo(render_runs(selected.listed(), len(selected.paths), width=width, color=color), color=color)
    return click.confirm(question, err=True)
