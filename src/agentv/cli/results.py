"""`agentv results …`: commands for stored runs (SPEC section 12)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.lazy import LazyCommands, Registered
from agentv.cli.printing import print_json, print_pieces, width_and_color
from agentv.cli.values import runs
from agentv.errors import ExitStatus, UsageError
from agentv.model.run.runs import Selection
from agentv.model.run.trial import Status
from agentv.model.values.formatting import plural
from agentv.registry.extensions import TRACE_FORMATS
from agentv.reports.text import one_line, safe, shown_from
from agentv.user_code.plugins import added_value

if TYPE_CHECKING:
    from agentv.app.results.deleting import SelectedRuns
    from agentv.app.results.stored import StoredRun


COMMANDS = ("list", "show", "export", "report", "merge", "pin", "delete")


@click.group(
    "results",
    cls=LazyCommands,
    places={name: f"agentv.cli.results:{name}_command" for name in COMMANDS},
    epilog="Example: agentv results list",
)
def group() -> None:
    """Inspect past runs: list, show, export, merge, pin and delete them.

    A RUN is a run id, its directory, or `last`.
    """


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
    from agentv.reports.runs import render_runs, run_data

    here = str(Path.cwd())
    listing = listed_runs(limit)
    runs = list(listing.runs)
    if as_json:
        print_json([run_data(run, here) for run in runs])
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
    from agentv.reports.stored_run import ShowOptions, render_head

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

    found = one_line(pin(run, remove=remove))
    click.echo(f"{found} is no longer pinned" if remove else f"pinned {found}: trend compares later runs with it")
    return ExitStatus.PASSED


_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_MEGABYTE = 1_000_000


def _parse_age(ctx: click.Context, param: click.Parameter, value: str | None) -> timedelta | None:
    """Return the age in `12h`, `30d` or `2w`; a number without a unit is in days."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})([hdw]?)", value)
    if found is None:
        raise click.BadParameter(f"'{value}' is not an age; write 12h, 30d or 4w", ctx, param)
    return timedelta(**{_UNITS[found[2] or "d"]: int(found[1])})


@click.command("delete", epilog="Example: agentv results delete --older-than 30d --keep 10")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=runs)
@click.option(
    "--older-than",
    callback=_parse_age,
    metavar="AGE",
    help="Delete runs that started longer ago, such as 12h, 30d or 4w.",
)
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the newest N runs.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete_command(runs: tuple[str, ...], older_than: timedelta | None, keep: int | None, *, yes: bool) -> int:
    """Delete runs: those you name, or old ones of this repository.

    Asks for confirmation. Deletes only files that agentv wrote, and no run that is still being written. With both
    options, a run must be older than AGE and not among the newest N.
    """
    from agentv.app.results.deleting import delete, named_runs, runs_by_age

    by_age = older_than is not None or keep is not None
    if bool(runs) == by_age:
        raise UsageError(
            "no runs selected: give run ids, or use --older-than and --keep", "list them with agentv results list"
        )
    selected = named_runs(runs) if runs else runs_by_age(older_than, keep or 0, datetime.now(UTC))
    for why in selected.not_deleted:
        click.echo(safe(why), err=True)
    if not selected.paths:
        click.echo("no runs to delete")
        return ExitStatus.ERRORED if selected.refused else ExitStatus.PASSED
    if not yes and not _is_confirmed(selected):
        click.echo("nothing was deleted")
        return ExitStatus.PASSED
    deleted = delete(selected)
    for line in (*deleted.left, *(f"error: {error}" for error in deleted.errors)):
        click.echo(safe(line), err=True)
    click.echo(f"deleted {plural(deleted.runs, 'run')}")
    return ExitStatus.ERRORED if deleted.errors or selected.refused else ExitStatus.PASSED


def _is_confirmed(selected: SelectedRuns) -> bool:
    """List the selected runs, and return whether the user confirms their deletion.

    Raises:
        UsageError: stdin is not a terminal.
    """
    from agentv.reports.runs import render_runs

    question = f"delete {plural(len(selected.paths), 'run')}, {selected.size / _MEGABYTE:.1f} MB?"
    if not sys.stdin.isatty():
        raise UsageError(
            f"cannot ask for confirmation without a terminal: {question}", "use --yes to delete without asking"
        )
    width, color = width_and_color()
    click.echo(render_runs(selected.listed(), len(selected.paths), width=width, color=color), color=color)
    return click.confirm(question, err=True)


_NAMES = {"case": "cases", "suite": "suites", "target": "targets", "tag": "tags"}
_STATUSES: tuple[Status, ...] = ("failed", "errored", "passed", "skipped", "shown")

_OPTIONS = (
    click.option("--failed", is_flag=True, help="Include failed trials."),
    click.option("--errored", is_flag=True, help="Include errored trials."),
    click.option("--passed", is_flag=True, help="Include passed trials."),
    click.option("--skipped", is_flag=True, help="Include trials skipped because a dependency did not pass."),
    click.option("--shown", is_flag=True, help="Include trials that were shown and not checked."),
    click.option("--case", multiple=True, metavar="GLOB", help="Include cases whose id matches."),
    click.option("--suite", multiple=True, metavar="GLOB", help="Include suites whose name matches."),
    click.option("--target", multiple=True, metavar="GLOB", help="Include targets whose name matches."),
    click.option("--tag", multiple=True, metavar="GLOB", help="Include cases with a matching tag."),
)

Command = Callable[..., int]


def selection_options(command: Command) -> Command:
    """Add the options that select trials to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def selection_of(chosen: dict[str, Any]) -> Selection:
    """Return the selection of the options that `selection_options` adds; all trials if none is given."""
    statuses = tuple(status for status in _STATUSES if chosen[status])
    return Selection(statuses, **{field: tuple(chosen[name]) for name, field in _NAMES.items()})


TRIALS_SHOWN = 20
"""Default maximum of trials, or of cases with whole answers, in text output."""

MATRIX_CASES_SHOWN = 100
"""Default maximum of cases of `--matrix`."""


@click.command("show", epilog="Example: agentv results show last --failed")
@click.argument("run", metavar="[RUN]", default="last", shell_complete=runs)
@selection_options
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    help=f"At most N trials ({TRIALS_SHOWN}; all with --json), or cases with --matrix ({MATRIX_CASES_SHOWN}).",
)
@click.option("--matrix", is_flag=True, help="Show a line for each case, a column for each prompt, target and variant.")
@click.option("--answers", is_flag=True, help="With --matrix: show whole answers side by side.")
@click.option("--different", is_flag=True, help="With --matrix: only cases whose columns disagree.")
@click.option("--full", is_flag=True, help="Do not shorten answers and evidence.")
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print run.json, summary.json and the rows to stdout as one JSON object."
)
def show_command(
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
    from agentv.app.results.selecting import choose
    from agentv.app.results.stored import open_run

    found = open_run(run, action="show", partial=partial)
    if matrix:
        _show_matrix(found, selection_of(chosen), limit, answers=answers or full, different=different, full=full)
        return ExitStatus.PASSED
    wanted = limit if limit is not None or as_json else TRIALS_SHOWN
    picked = choose(found, selection_of(chosen), wanted, failures_first=not as_json)
    if as_json:
        from agentv.app.exports import Exported, rendered

        print_pieces(rendered(".json", Exported(picked.run)))
        return ExitStatus.PASSED
    from agentv.reports.stored_run import ShowOptions, render_head, render_rest, render_trial

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
    from agentv.reports.side_by_side import render_case, render_grid, render_rest
    from agentv.reports.stored_run import ShowOptions, render_head

    width, color = width_and_color()
    options = ShowOptions(here=str(Path.cwd()), color=color, full=full, width=width)
    most = limit if limit is not None else TRIALS_SHOWN if answers else MATRIX_CASES_SHOWN
    found = side_by_side(run, selection, most, different=different)
    click.echo(render_head(shown_run(run), options), color=color)
    if answers:
        for case in found.cases:
            click.echo(f"\n{render_case(case, found, options)}", color=color)
    elif found.cases:
        click.echo(f"\n{render_grid(found, options)}", color=color)
    if rest := render_rest(found):
        click.echo(f"\n{rest}")


@click.command("export", epilog="Example: agentv results export last --failed -o failed.csv")
@click.argument("run", metavar="[RUN]", default="last", shell_complete=runs)
@click.option(
    "-o", "--out", multiple=True, metavar="FILE", help="Output file. Its suffix selects the format. Repeatable."
)
@click.option("--format", "form", type=Registered(TRACE_FORMATS, ()), help="Export traces in this format instead.")
@selection_options
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Maximum number of trials.")
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
def export_command(
    run: str, out: tuple[str, ...], form: str | None, limit: int | None, *, partial: bool, **chosen: Any
) -> int:
    """Export the trials of a run (default: the last) to files.

    FILE ends in .jsonl, .json, .csv, .xml (JUnit), .md or .html. Its totals are those of the whole run.

    With --format, the traces are exported: otlp to .json or .pb (protobuf), atif to .json (one trial) or .jsonl.
    """
    from agentv.app.exports import Exported, check_export, write_export
    from agentv.app.results.selecting import choose
    from agentv.app.results.stored import open_run

    if not out:
        raise UsageError("no output file", "give -o FILE, such as -o rows.csv")
    found = open_run(run, action="export", partial=partial)
    for file in out if form is None else ():
        check_export(Path(file), found.path)
    if not found.index.exists() or not found.index.stat().st_size:
        raise UsageError(f"nothing to export: no trial of the run {found.run_id} has finished")
    selection, number = selection_of(chosen), None
    if limit is not None or selection != Selection():
        picked = choose(found, selection, limit)
        found, number = picked.run, picked.wanted
    if form is not None:
        for line in added_value(TRACE_FORMATS, form)(found, [Path(file) for file in out]):
            click.echo(line, err=True)
        return ExitStatus.PASSED
    for file in out:
        write_export(Exported(found), Path(file))
        click.echo(f"wrote {one_line(file)}" + (f": {plural(number, 'trial')}" if number is not None else ""), err=True)
    return ExitStatus.PASSED


_SUFFIXES = {"html": ".html", "md": ".md", "junit": ".xml"}
"""Option of `results report` → suffix that selects the format."""


@click.command("report", epilog="Example: agentv results report last --md summary.md --junit junit.xml")
@click.argument("run", metavar="[RUN]", default="last", shell_complete=runs)
@click.option("--html", metavar="FILE", help="Write a self-contained HTML page.")
@click.option("--md", metavar="FILE", help="Write Markdown that fits into a pull request comment.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML for CI servers.")
@click.option("--against", metavar="RUN", help="With --html: compare each answer with that of an earlier run.")
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
def report_command(run: str, against: str | None, *, partial: bool, **files: str | None) -> int:
    """Write reports of a run (default: the last).

    Use - as FILE to write to stdout.
    """
    from agentv.app.exports import Exported, rendered, write_export
    from agentv.app.results.stored import open_run

    wanted = {_SUFFIXES[name]: file for name, file in files.items() if file is not None}
    if not wanted:
        raise UsageError("no report given", "give --html FILE, --md FILE or --junit FILE")
    if len(set(wanted.values())) < len(wanted):
        raise UsageError("two reports use the same file", "give each its own FILE")
    if against is not None and ".html" not in wanted:
        raise UsageError("--against requires --html", "add --html FILE, or use `agentv compare`")
    found = open_run(run, action="report", partial=partial)
    if next(found.results(), None) is None and not Exported(found).totals().is_empty_shard:
        raise UsageError(f"nothing to report: no trial of the run {found.run_id} has finished")
    earlier = open_run(against, action="compare with", partial=partial) if against is not None else None
    exported = Exported(found, against=earlier)
    for suffix, file in wanted.items():
        if file == "-":
            print_pieces(rendered(suffix, exported))
        else:
            write_export(exported, Path(file), suffix)
            click.echo(f"wrote {one_line(file)}", err=True)
    return ExitStatus.PASSED
