"""`agentv power`."""

from __future__ import annotations

import click

from agentv.errors import ExitStatus


@click.command("power", epilog="Example: agentv power --cases 200 --repeat 3 --detect 0.05")
@click.option("--cases", type=int, metavar="N", help="How many cases both runs have.")
@click.option("--repeat", type=click.IntRange(1, 10_000), metavar="R", help="Samples of each case in each run.")
@click.option("--detect", type=float, metavar="D", help="The drop of the pass rate that matters, such as 0.05.")
@click.option("--rate", type=float, metavar="SHARE", help="The pass rate that is expected; 0.8 unless told.")
@click.option(
    "--alike", type=click.FloatRange(0, 1), metavar="SHARE", help="Part of the variance between cases; 0.5 unless told."
)
@click.option(
    "--shared", type=click.FloatRange(0, 1), metavar="SHARE", help="Part of it that both runs share; 0.5 unless told."
)
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="How often chance may look like a difference.",
)
@click.option(
    "--power",
    type=float,
    default=0.8,
    show_default=True,
    metavar="SHARE",
    help="How often a true drop shall be seen.",
)
@click.option("--from", "earlier", metavar="RUN", help="Take cases, repeat, rate and noise from a run, or 'last'.")
@click.option("--json", "as_json", is_flag=True, help="As JSON on stdout.")
def command(*, as_json: bool, **asked: object) -> int:
    """Say what a planned comparison of two runs can show, and what it cannot.

    Without --detect: a table of the least drops of the pass rate that `agentv compare` shows. With it: how often that
    drop is shown, and how many cases it takes. A rise to a rate is shown as often as a drop from it.

    With --from, the pass rate and its noise are those of an earlier run, as far as it tells, and where the noise of its
    scores comes from is told: the cases, the target's answers, or the judge's votes.

    Exit status 2 if it cannot be planned.
    """
    from agentv.app.power import PlanAsked, plan
    from agentv.reports.power import PilotShown, PlanShown, power_json, render_power

    planned = plan(PlanAsked(**asked))  # type: ignore[arg-type]  # click read them by the types above
    pilot = None
    if (run := planned.pilot) is not None:
        trials = (run.passed, run.judged)
        pilot = PilotShown(run.run_id, run.cases, run.repeat, trials, run.mean, run.disagreement, run.scores)
    shown = PlanShown(planned.plan, planned.detect, pilot, planned.rate_from, planned.alike_from)
    click.echo(power_json(shown) if as_json else render_power(shown, sized=planned.cases_given))
    return ExitStatus.PASSED
