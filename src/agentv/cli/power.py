"""`agentv power`."""

from __future__ import annotations

import click

from agentv.cli.values import Share
from agentv.errors import ExitStatus


@click.command("power", epilog="Example: agentv power --cases 200 --repeat 3 --detect 0.05")
@click.option("--cases", type=int, metavar="N", help="Cases in both runs.")
@click.option("--repeat", type=click.IntRange(1, 10_000), metavar="R", help="Samples of each case in each run.")
@click.option(
    "--detect", type=Share(), metavar="D", help="Difference of the pass rate, or mean score, to detect, such as 0.05."
)
@click.option("--rate", type=Share(), metavar="SHARE", help="Expected pass rate, or mean score (default 0.8).")
@click.option("--alike", type=Share(0, 1), metavar="SHARE", help="Share of the variance between cases (default 0.5).")
@click.option(
    "--shared", type=Share(0, 1), metavar="SHARE", help="Share of it that both runs have in common (default 0.5)."
)
@click.option(
    "--alpha",
    type=Share(),
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="False-positive rate of the comparison.",
)
@click.option(
    "--power",
    type=Share(),
    default=0.8,
    show_default=True,
    metavar="SHARE",
    help="Probability of showing a true difference.",
)
@click.option(
    "--margin", type=Share(), metavar="D", help="Loss that does not matter; plan to show that it is no larger."
)
@click.option("--cluster-size", type=click.IntRange(1), metavar="N", help="Cases of one cluster, such as a customer.")
@click.option("--icc", type=Share(0, 1), metavar="SHARE", help="Correlation within a cluster (default 0.3).")
@click.option("--deviation", type=float, metavar="SD", help="Plan scores with this standard deviation and mean --rate.")
@click.option("--from", "earlier", metavar="RUN", help="Take cases, clusters, repeat, rate and noise from RUN.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(*, as_json: bool, **asked: object) -> int:
    """Plan how many cases a comparison of two runs needs.

    With --detect: how often `agentv compare` would show such a drop or rise, and about how many cases show it with 80%
    power. With --margin alone: how often it would show that an unchanged run is not worse by more than that. Without
    either: a table of the smallest differences that are shown with 80% power. All of it is simulated with the rule of
    `compare`.

    With --from, the pass rate, the scores, the clusters and their noise are those of an earlier run.

    Exit status 2 if it cannot be planned.
    """
    from agentv.app.power import PlanRequest, plan
    from agentv.cli.printing import print_json
    from agentv.reports.power import power_data, render_power

    shown = plan(PlanRequest(**asked))  # type: ignore[arg-type]  # click converted them to the types above
    if as_json:
        print_json(power_data(shown))
    else:
        click.echo(render_power(shown))
    return ExitStatus.PASSED
