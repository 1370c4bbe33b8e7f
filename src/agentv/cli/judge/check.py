"""`agentv judge check`."""

from __future__ import annotations

import click

from agentv.cli.completion.values import runs
from agentv.errors import ExitStatus


@click.command("check", epilog="Example: agentv judge check last")
@click.argument("run", metavar="[RUN|LABELS]", default="last", shell_complete=runs)
@click.option("--assertion", metavar="NAME", help="Check only the judge of this assertion.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(run: str, assertion: str | None, *, as_json: bool) -> int:
    """Show how well the judge of a run (default: the last) agrees with people, and correct its pass rate.

    Prints the confusion matrix, TPR, TNR, accuracy and Cohen's kappa with 95% confidence intervals, how far people
    agree with each other, how many more labels are worth giving, and every disagreement, false passes first.

    LABELS is a file in .agentv/labels: what it alone shows, without the run.

    Exit status 2 if there are no labels, or a file of labels is wrong.
    """
    from agentv.app.labels.checking import check_judges
    from agentv.reports.commands.judge_check import judge_check_json, render_judge_check

    found = check_judges(run, assertion)
    click.echo(judge_check_json(found) if as_json else render_judge_check(found))
    return ExitStatus.PASSED
