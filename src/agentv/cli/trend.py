"""`agentv trend`."""

from __future__ import annotations

from shutil import get_terminal_size

import click

from agentv.errors import ExitStatus


@click.command("trend", epilog="Example: agentv trend --last 20 --suite refunds")
@click.option("--suite", metavar="NAME", help="Suite to plot. Required if there are several.")
@click.option("--target", metavar="NAME", help="Plot the results of this target only.")
@click.option(
    "--last",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of runs to include.",
)
@click.option("--score", is_flag=True, help="Plot the mean score instead of the pass rate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(*, suite: str | None, target: str | None, last: int, score: bool, as_json: bool) -> int:
    """Plot a suite's pass rate over its last runs, and report whether it rises or falls, or after which run it changed.

    Each case is compared with itself. The confidence interval allows for noise that is correlated from run to run; if
    it contains 0, no trend is shown. The plotted line is that of Theil and Sen, which is robust to outliers.
    Uses the runs in .agentv/results that called their target; changes of cases, targets, thresholds and repeats
    between them are noted.

    With --target, runs of several suites are excluded: they do not record the target's results in each suite.

    Exit status 2 if there is no run of the suite or of the target.
    """
    from agentv.app.trend import trend
    from agentv.reports.commands.trend import render_trend, trend_json

    found = trend(suite, last, "mean score" if score else "pass rate", target=target)
    click.echo(trend_json(found) if as_json else render_trend(found, width=get_terminal_size().columns))
    return ExitStatus.PASSED
