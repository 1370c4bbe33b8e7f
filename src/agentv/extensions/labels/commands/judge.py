"""`agentv judge check` and `agentv judge compare`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from agentv.cli.lazy import LazyCommands
from agentv.cli.values import runs
from agentv.errors import ExitStatus

COMMANDS = {name: f"agentv.extensions.labels.commands.judge:{name}" for name in ("check", "compare")}


@click.group("judge", cls=LazyCommands, places=COMMANDS, epilog="Example: agentv judge check last")
def group() -> None:
    """Measure how well a judge agrees with people.

    `agentv label` collects the labels that it is measured by.
    """


@contextmanager
def verdict_progress() -> Iterator[Callable[[int, int], None]]:
    """Count verdicts on stderr, where that is a terminal, and say what an interruption keeps."""
    shown = -1
    terminal, made = sys.stderr.isatty(), 0

    def report(done: int, total: int) -> None:
        nonlocal shown, made
        made, percent = done, 100 * done // total
        if terminal and percent != shown:
            shown = percent
            click.echo(f"\r{done} of {total} verdicts", nl=False, err=True)

    try:
        yield report
    except KeyboardInterrupt:
        if made:
            click.echo("\nverdicts so far are cached; run the same command to continue", err=True)
        raise
    finally:
        if shown >= 0:
            click.echo("\r\x1b[K", nl=False, err=True)


@click.command("check", epilog="Example: agentv judge check last")
@click.argument("run", metavar="[RUN|LABELS]", default="last", shell_complete=runs)
@click.option("--assertion", metavar="NAME", help="Check only the judge of this assertion.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def check(run: str, assertion: str | None, *, as_json: bool) -> int:
    """Show how well the judge of a run (default: the last) agrees with people, and correct its pass rate.

    Prints the confusion matrix, TPR, TNR, accuracy and Cohen's kappa with 95% confidence intervals, how far people
    agree with each other, how many more labels are worth giving, and every disagreement, false passes first.

    LABELS is a file in .agentv/labels: what it alone shows, without the run.

    Exit status 2 if there are no labels, or a file of labels is wrong.
    """
    from agentv.extensions.labels.checking import check_judges
    from agentv.extensions.labels.reports.judge_check import judge_check_json, render_judge_check

    found = check_judges(run, assertion)
    click.echo(judge_check_json(found) if as_json else render_judge_check(found))
    return ExitStatus.PASSED


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
@click.option("--votes", type=int, metavar="N", help="Ask each judge N times (odd); the majority is its verdict.")
@click.option("--budget-usd", type=click.FloatRange(0, min_open=True), metavar="USD", help="Budget in US dollars.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def compare(judges: tuple[str, ...], *, margin: float, as_json: bool, **options: Any) -> int:
    """Compare judges on the answers of a run that people labelled, and name the cheapest that is not worse.

    JUDGE is a name from targets.yaml or provider:model. To change how it judges, add options: NAME,prompt=FILE,
    NAME,votes=3, NAME,temperature=0.5. All judges grade the same answers, with the rubrics of the eval files as they
    are now.

    Prints accuracy, TPR, TNR and Cohen's kappa with 95% confidence intervals, cost and latency, and for each judge the
    difference to the most accurate one. Three or more judges are also shown as a majority.

    Verdicts are cached: after Ctrl-C or a spent budget, run the same compare to continue.

    Exit status 2 if there are no labels, or a judge does not exist or gave too few verdicts; 3 if the budget is spent.
    """
    from agentv.extensions.labels.judges.comparing import CompareRequest, compare_judges
    from agentv.extensions.labels.reports.judge_compare import judge_comparison_json, render_judge_comparison
    from agentv.user_code.guard import apart_from_output

    with verdict_progress() as report, apart_from_output():
        found = compare_judges(CompareRequest(judges, margin=margin / 100, **options), report)
    click.echo(judge_comparison_json(found) if as_json else render_judge_comparison(found))
    return ExitStatus.PASSED if found.is_complete else ExitStatus.WRONG
