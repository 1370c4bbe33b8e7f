"""`agentv judge check`."""

from __future__ import annotations

from typing import Any

import click

from agentv.cli.completion.values import runs
from agentv.errors import ExitStatus, UsageError

_OF_PROBES = {"judge": "--judge", "sample": "--sample", "seed": "--seed", "budget_usd": "--budget-usd"}


@click.command("check", epilog="Example: agentv judge check last")
@click.argument("run", metavar="[RUN|LABELS]", default="last", shell_complete=runs)
@click.option("--assertion", metavar="NAME", help="Check only the judge of this assertion.")
@click.option(
    "--probe",
    metavar="NAMES",
    help="Show instead how often the verdict changes if only the form of the answer does: all, or names separated by"
    " commas, such as repeat,longer. Calls the judge; needs no labels.",
)
@click.option("--sample", type=click.IntRange(1), metavar="N", help="With --probe: number of answers (default 30).")
@click.option("--seed", type=int, metavar="S", help="With --probe: seed of the draw (default 0).")
@click.option("--judge", metavar="JUDGE", help="With --probe: judge to probe (default: the judge in effect).")
@click.option(
    "--budget-usd", type=click.FloatRange(0, min_open=True), metavar="USD", help="With --probe: budget in US dollars."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(run: str, assertion: str | None, *, probe: str | None, as_json: bool, **options: Any) -> int:
    """Show how well the judge of a run (default: the last) agrees with people, and correct its pass rate.

    Prints the confusion matrix, TPR, TNR, accuracy and Cohen's kappa with 95% confidence intervals, how far people
    agree with each other, how many more labels are worth giving, and every disagreement, false passes first.

    LABELS is a file in .agentv/labels: what it alone shows, without the run.

    --probe needs no labels. Probes: repeat (ask the same again), order (reverse the rubric's items), longer, markdown,
    confident, other-model and own-model (name a model as the author). Verdicts are cached.

    Exit status 2 if there are no labels, a file of labels is wrong, or a probed judge gave too few verdicts; 3 if the
    budget of --probe is spent.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if probe is None:
        if given:
            raise UsageError(f"{_OF_PROBES[next(iter(given))]} needs --probe", "use --probe all")
        from agentv.extensions.labels.checking import check_judges
        from agentv.extensions.labels.reports.judge_check import judge_check_json, render_judge_check

        found = check_judges(run, assertion)
        click.echo(judge_check_json(found) if as_json else render_judge_check(found))
        return ExitStatus.PASSED
    from agentv.extensions.labels.commands.progress import VerdictProgress
    from agentv.extensions.labels.judges.probing import ProbeRequest, probe_judges
    from agentv.extensions.labels.reports.judge_compare import json_of
    from agentv.extensions.labels.reports.judge_probe import render_judge_probing
    from agentv.user_code.functions.guard import apart_from_output

    names = tuple(name.strip() for name in probe.split(",") if name.strip())
    if not names:
        raise UsageError("--probe has no name", "use --probe all")
    with VerdictProgress() as progress, apart_from_output():
        probed = probe_judges(ProbeRequest(run, names, assertion, **given), progress.report)
    click.echo(json_of(probed) if as_json else render_judge_probing(probed))
    return ExitStatus.PASSED if probed.is_complete else ExitStatus.WRONG
