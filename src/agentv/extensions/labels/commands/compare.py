"""`agentv judge compare`."""

from __future__ import annotations

from typing import Any

import click

from agentv.cli.completion.values import runs
from agentv.errors import ExitStatus


@click.command("compare", epilog="Example: agentv judge compare openai:gpt-5-mini openai:gpt-5 --budget-usd 2")
@click.argument("judges", metavar="JUDGE...", nargs=-1, required=True)
@click.option("--run", metavar="RUN", default="last", show_default=True, shell_complete=runs, help="Run with labels.")
@click.option("--assertion", metavar="NAME", help="Compare only on answers that this assertion graded.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 100, min_open=True),
    default=5.0,
    show_default=True,
    metavar="POINTS",
    help="How much less accurate a judge may be and count as not worse, in percentage points.",
)
@click.option("--votes", type=int, metavar="N", help="Ask each judge N times (odd), and show what more votes add.")
@click.option("--budget-usd", type=click.FloatRange(0, min_open=True), metavar="USD", help="Budget in US dollars.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(judges: tuple[str, ...], *, margin: float, as_json: bool, **options: Any) -> int:
    """Compare judges on the answers of a run that people labelled, and name the cheapest that is not worse.

    JUDGE is a name from targets.yaml or provider:model. To change how it judges, add options: NAME,prompt=FILE,
    NAME,votes=3, NAME,temperature=0.5. All judges grade the same answers, with the rubrics of the eval files as they
    are now.

    Prints accuracy, TPR, TNR and Cohen's kappa with 95% confidence intervals, cost and latency, and for each judge the
    difference to the most accurate one. Three or more judges are also shown as a majority.

    Verdicts are cached: after Ctrl-C or a spent budget, run the same command to continue.

    Exit status 2 if there are no labels, or a judge does not exist or gave too few verdicts; 3 if the budget is spent.
    """
    from agentv.extensions.labels.commands.progress import VerdictProgress
    from agentv.extensions.labels.judges.comparing import CompareRequest, compare_judges
    from agentv.extensions.labels.reports.judge_compare import judge_comparison_json, render_judge_comparison
    from agentv.user_code.functions.guard import apart_from_output

    with VerdictProgress() as progress, apart_from_output():
        found = compare_judges(CompareRequest(judges, margin=margin / 100, **options), progress.report)
    click.echo(judge_comparison_json(found) if as_json else render_judge_comparison(found))
    return ExitStatus.PASSED if found.is_complete else ExitStatus.WRONG
