"""`agentv trend`."""

from __future__ import annotations

import click

from agentv.errors import ExitStatus


@click.command("trend", epilog="Example: agentv trend --last 20 --suite refunds")
@click.option("--suite", metavar="NAME", help="Suite to show. Required if there are several.")
@click.option("--target", metavar="NAME", help="Target to show. Required if the newest run has several.")
@click.option(
    "--last",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of runs to show.",
)
@click.option("--score", is_flag=True, help="Show the mean score instead of the pass rate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(*, suite: str | None, target: str | None, last: int, score: bool, as_json: bool) -> int:
    """Show the pass rate of a suite's last runs on one target, and after which run it changed.

    Each run is compared with the one before it, case by case, as compare does. The latest run is also compared with
    the baseline: the run pinned with `agentv results pin RUN`, else the first run shown. The chance of any false claim
    is at most 5% over the whole series, however long it gets: the comparisons of run 2, 3, 4, … may spend less and
    less of it. So a later run never retracts what an earlier one showed.

    Uses whole runs in .agentv/results that called their target; others are left out and listed.

    Exit status 2 if there is no such run.
    """
    from agentv.app.trend import trend
    from agentv.cli.printing import width_and_color
    from agentv.reports.commands.trend import render_trend, trend_json

    found = trend(suite, last, "mean score" if score else "pass rate", target=target)
    width, color = width_and_color()
    click.echo(trend_json(found) if as_json else render_trend(found, width=width, color=color), color=color)
    return ExitStatus.PASSED
