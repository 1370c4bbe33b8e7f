"""`agentv compare` and `agentv trend`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from agentv.cli.values import Choice, Share, runs
from agentv.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from agentv.model.run.comparison import Comparison, Matrix, Requirement, RunComparison


_SHARE = Share(0, 1, min_open=True, max_open=True)


@click.command("compare", epilog="Example: agentv compare 20261121T140322Z-7f3a last --margin 0.02")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [CANDIDATE]...", shell_complete=runs)
@click.option(
    "--margin",
    type=_SHARE,
    metavar="X",
    help="Largest difference that does not matter. With it, 'equivalent' and 'non-inferior' can be shown.",
)
@click.option(
    "--alpha",
    type=_SHARE,
    default=0.05,
    metavar="X",
    help="False-positive rate, shared by all tests that are made together (0.05).",
)
@click.option(
    "--errored",
    type=Choice(("bounds", "fail", "drop")),
    default="bounds",
    help=(
        "How errored samples count. bounds (default): a verdict must hold whether they would have failed or passed."
        " fail: as failed. drop: exclude their cases."
    ),
)
@click.option(
    "--require",
    type=Choice(("better", "non-inferior", "not-worse")),
    default="not-worse",
    help="Exit with 1 unless the candidate is shown to be better, or non-inferior, or is not shown to be worse"
    " (not-worse).",
)
@click.option(
    "--fail-on",
    type=Choice(("regression", "any")),
    default="regression",
    help="With 'any', also exit with 1 if any case passed in the base and does not pass now.",
)
@click.option(
    "--by",
    type=Choice(("suite", "tag", "target", "prompt", "variant")),
    help=(
        "Also compare each suite, or the cases of each tag or variant."
        " With one run: compare its targets, prompts or variants in pairs."
    ),
)
@click.option("--cluster", metavar="KEY", help="Metadata key whose equal values make cases dependent.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help=(
        "Compare only this target: once for all runs, or once for each run in order."
        " With one run: the targets to compare, base first."
    ),
)
@click.option("--edited", is_flag=True, help="Include cases that were edited between the runs.")
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
@click.option("--limit", type=click.IntRange(0), default=20, metavar="N", help="Moved cases to show (20).")
@click.option("-v", "--verbose", is_flag=True, help="Also print the method, and the interval without its guard.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(
    *,
    runs: tuple[str, ...],
    as_json: bool,
    verbose: bool,
    fail_on: Literal["regression", "any"],
    require: Requirement,
    margin: float | None,
    **chosen: Any,
) -> int:
    """Compare a candidate run with a base run: better, worse, equivalent, non-inferior, or inconclusive.

    A run is an id, a directory, or 'last'. Cases are matched by suite and id. Cases in only one run and cases that
    were edited between the runs are listed but not counted. More than two runs are compared in pairs. With one run,
    its targets, prompts and variants are compared, each with the first.

    Exit status: 0 the requirement holds, which by default also means 'inconclusive'; 1 it does not; 2 the runs cannot
    be compared; 3 no case was graded in both runs.
    """
    if require == "non-inferior" and margin is None:
        raise UsageError("--require non-inferior needs a margin", "for example: --margin 0.02")
    from agentv.app.compare.comparing import CompareRequest, compare
    from agentv.cli.printing import print_pieces
    from agentv.model.run.comparison import Comparison, ComparisonSettings, Matrix
    from agentv.reports.comparison import lost_line, warnings
    from agentv.reports.comparison_json import comparison_json
    from agentv.reports.run_comparison import lost_lines, run_warnings

    request = CompareRequest(runs, chosen.pop("targets"), chosen.pop("partial"))
    found = compare(request, ComparisonSettings(margin=margin or 0.0, plan=True, **chosen))
    if as_json:
        print_pieces(comparison_json(found, here=str(Path.cwd())))
        click.echo()
    else:
        _print(found, verbose=verbose)
    if isinstance(found, Comparison | Matrix):
        against = found.against_base
        warned = [warning for one in against for warning in warnings(one)]
        lost = [lost_line(one) for one in against if one.lost]
        failed = any(one.shown_worse or not (one.whole is None or one.meets(require)) for one in against)
        graded = all(one.whole is not None for one in against)
    else:
        warned, lost = list(run_warnings(found)), list(lost_lines(found))
        failed, graded = found.shown_worse or not found.meets(require), found.graded
    for warning in warned:
        click.echo(f"warning: {warning}", err=True)
    if fail_on == "any":
        for line in lost:
            click.echo(f"fails: {line}", err=True)
        failed = failed or bool(lost)
    if failed:
        return ExitStatus.FAILED
    return ExitStatus.PASSED if graded else ExitStatus.ERRORED


def _print(found: Comparison | Matrix | RunComparison, *, verbose: bool) -> None:
    from agentv.cli.printing import width_and_color
    from agentv.model.run.comparison import Comparison, Matrix
    from agentv.reports.comparison import render_comparison, render_matrix
    from agentv.reports.run_comparison import render_run_comparison

    _, color = width_and_color()
    if isinstance(found, Matrix):
        shown = render_matrix(found)
    elif isinstance(found, Comparison):
        shown = render_comparison(found, color=color, verbose=verbose)
    else:
        shown = render_run_comparison(found, color=color)
    click.echo(shown, color=color)


@click.command("trend", epilog="Example: agentv trend --last 20 --suite refunds")
@click.option("--suite", metavar="NAME", help="Suite to show. Required if there are several.")
@click.option("--target", metavar="NAME", help="Target to show. Required if the newest run has several.")
@click.option(
    "--last", type=click.IntRange(1, 10_000), default=20, show_default=True, metavar="N", help="Number of runs to show."
)
@click.option("--score", is_flag=True, help="Show the mean score instead of the pass rate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def trend_command(*, suite: str | None, target: str | None, last: int, score: bool, as_json: bool) -> int:
    """Show the pass rate of a suite's last runs on one target, and after which run it changed.

    Each run is compared with the one before it, case by case, as compare does. The latest run is also compared with
    the baseline: the run pinned with `agentv results pin RUN`, else the first run shown. The chance of any false claim
    is at most 5% over the whole series, however long it gets: the comparisons of run 2, 3, 4, … may spend less and
    less of it. So a later run never retracts what an earlier one showed.

    Uses whole runs in .agentv/results that called their target; others are left out and listed.

    Exit status 2 if there is no such run.
    """
    from agentv.app.trend import trend
    from agentv.cli.printing import print_json, width_and_color
    from agentv.reports.trend import render_trend, trend_data

    found = trend(suite, last, "mean score" if score else "pass rate", target=target)
    if as_json:
        print_json(trend_data(found))
    else:
        width, color = width_and_color()
        click.echo(render_trend(found, width=width, color=color), color=color)
    return ExitStatus.PASSED
