"""`agentv results show`, `export` and `report`: the trials of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.lazy import Registered
from agentv.cli.printing import width_and_color
from agentv.cli.values import runs
from agentv.errors import ExitStatus, UsageError
from agentv.model.run.runs import Selection
from agentv.model.run.trial import Status
from agentv.model.values.formatting import plural
from agentv.registry.extensions import TRACE_FORMATS
from agentv.reports.text.escaping import one_line
from agentv.user_code.plugins import added_value

if TYPE_CHECKING:
    from agentv.app.exports import Exported
    from agentv.app.results.selecting import SelectedTrials
    from agentv.app.results.stored import StoredRun


_LONG = 100_000_000
"""Bytes of rows that take more than a second to be indexed."""

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


def choosing(command: Command) -> Command:
    """The command with the options that choose trials."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def selection_of(chosen: dict[str, Any]) -> Selection:
    """The selection of the options; all trials if none is given."""
    statuses = tuple(status for status in _STATUSES if chosen[status])
    return Selection(statuses, **{field: tuple(chosen[name]) for name, field in _NAMES.items()})


def chosen_of(
    run: StoredRun, selection: Selection, limit: int | None, *, failures_first: bool = False
) -> SelectedTrials:
    """The chosen trials of a run. A person who has to wait for it sees why."""
    from agentv.app.results.selecting import bytes_to_index, choose

    size = bytes_to_index(run)
    if size > _LONG:
        click.echo(f"reading {size / 1e9:.1f} GB of rows into a search index; this happens once", err=True)
    return choose(run, selection, limit, failures_first=failures_first)


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


@click.command("export", epilog="Example: agentv results export last --failed -o failed.csv")
@click.argument("run", metavar="[RUN]", default="last", shell_complete=runs)
@click.option(
    "-o", "--out", multiple=True, metavar="FILE", help="Output file. Its suffix selects the format. Repeatable."
)
@click.option("--format", "form", type=Registered(TRACE_FORMATS, ()), help="Export traces in this format instead.")
@choosing
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Maximum number of trials.")
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
def export_command(
    run: str, out: tuple[str, ...], form: str | None, limit: int | None, *, partial: bool, **chosen: Any
) -> int:
    """Export the trials of a run (default: the last) to files.

    FILE ends in .jsonl, .json, .csv, .xml (JUnit), .md or .html. Its totals are those of the whole run.

    With --format, the traces are exported: otlp to .json or .pb (protobuf), atif to .json (one trial) or .jsonl.
    """
    from agentv.app.exports import check_export, write_export
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
        picked = chosen_of(found, selection, limit)
        found, number = picked.run, picked.wanted
    if form is not None:
        for line in added_value(TRACE_FORMATS, form)(found, [Path(file) for file in out]):
            click.echo(line, err=True)
        return ExitStatus.PASSED
    for file in out:
        write_export(found, Path(file))
        click.echo(f"wrote {one_line(file)}" + (f": {plural(number, 'trial')}" if number is not None else ""), err=True)
    return ExitStatus.PASSED


_SUFFIXES = {"html": ".html", "md": ".md", "junit": ".xml"}
"""Option → the format that it asks for."""


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
    from agentv.app.exports import Exported, write_as
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
            _print(suffix, exported)
        else:
            write_as(suffix, exported, Path(file))
            click.echo(f"wrote {one_line(file)}", err=True)
    return ExitStatus.PASSED


def _print(suffix: str, exported: Exported) -> None:
    from agentv.app.exports import rendered

    for piece in rendered(suffix, exported):
        click.echo(piece, nl=False)
