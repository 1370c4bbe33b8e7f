"""`agentv label`, `agentv judge check` and `agentv judge compare`."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from agentv.cli.lazy import LazyCommands
from agentv.cli.values import runs
from agentv.errors import ExitStatus, UsageError
from agentv.model.values.formatting import plural

if TYPE_CHECKING:
    from agentv.extensions.labels.labelling import LabellingSession


SAMPLE = 60
"""Default number of answers to draw, which narrows most corrected rates to about ±8 points."""


@click.command("label", epilog="Example: agentv label last --sample 60")
@click.argument("named", metavar="[RUN]", required=False, shell_complete=runs)
@click.option("--assertion", metavar="NAME", help="Label only answers that this assertion graded.")
@click.option(
    "--sample",
    type=click.IntRange(1),
    default=SAMPLE,
    show_default=True,
    metavar="N",
    help="Number of answers to draw.",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="Seed of the draw.")
@click.option("--rate", is_flag=True, help="Rate any answer instead, judged or not: 1 good, 0 bad, c comment.")
@click.option("--by", metavar="NAME", help="Who labels (default: your login name).")
@click.option(
    "--export", "export_to", type=click.Path(path_type=Path), metavar="FILE", help="Write the drawn answers to FILE."
)
@click.option(
    "--import",
    "import_from",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Add the labels of an exported FILE.",
)
def command(
    named: str | None,
    assertion: str | None,
    by: str | None,
    *,
    sample: int,
    seed: int,
    rate: bool,
    **files: Path | None,
) -> int:
    """Label answers of a run (default: the newest of whole suites) that a judge graded, without seeing its verdicts.

    Answers are drawn evenly from those that the judge passed and those that it failed, in random order. Each label is
    saved at once to .agentv/labels/SUITE.jsonl; commit that file. Run the command again to continue. With the same
    seed, another person gets the same answers, and a larger --sample adds to them.

    Keys: 1 pass, 0 fail, u unsure, n note, b back, q quit.

    With --rate every answer is shown, in the order of the eval files and with the result of its case: 1 good, 0 bad
    (press again to withdraw), c comment, Enter next. Ratings change no verdict and no pass rate.

    To label in a browser: agentv view --label. To label elsewhere, --export to a .csv file, fill in `label` (pass, fail
    or unsure) and `note`, and --import.
    """
    from agentv.app.results.place import RESULTS, project_with
    from agentv.app.results.stored import last_complete_run

    run = named or last_complete_run(project_with(RESULTS))
    export_to, import_from = files["export_to"], files["import_from"]
    if rate:
        return _rate_in_terminal(run, _person(by))
    if export_to is not None and import_from is not None:
        raise UsageError("--export and --import conflict", "use one of them")
    if import_from is not None:
        from agentv.extensions.labels.labelling import import_labels

        added = import_labels(run, import_from, _person(by))
        known = f"{added.known} already known, {added.empty} left empty"
        click.echo(f"{plural(added.added, 'label')} added, {known}", err=True)
        if added.not_drawn:
            click.echo(f"{added.not_drawn} of them are not of the draw, so they do not correct the pass rate", err=True)
        return ExitStatus.PASSED
    from agentv.extensions.labels.labelling import open_session

    session = open_session(run, assertion, sample, seed, _person(by))
    if export_to is not None:
        from agentv.extensions.labels.labelling import export_answers

        export_answers(session, export_to)
        written = plural(len(session.distinct), "answer")
        click.echo(f"{written} written to {export_to}; fill in 'label', then use --import", err=True)
        return ExitStatus.PASSED
    return _label_in_terminal(session, run)


def _rate_in_terminal(run: str, person: str) -> int:
    context = click.get_current_context()
    for name in ("assertion", "sample", "seed", "export_to", "import_from"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = next(one.opts[0] for one in context.command.params if one.name == name)
            raise UsageError(f"--rate and {option} conflict", "--rate shows every answer of the run")
    _check_terminal("rating", "to rate in a browser: agentv view --label")
    from agentv.extensions.labels.ratings import open_ratings
    from agentv.extensions.labels.screen import rate_all

    session = open_ratings(run, person)
    status = ExitStatus.PASSED
    try:
        rate_all(session)
    except (KeyboardInterrupt, click.Abort):
        status = ExitStatus.INTERRUPTED
    rated = sum(session.own(answer) is not None for answer in session.answers)
    click.echo(f"\nyou rated {rated} of {plural(len(session.answers), 'answer')} of this run", err=True)
    for place in session.store.places({suite for suite, _, _ in session.answers}) if rated else ():
        click.echo(f"  {place}", err=True)
    return status


def _check_terminal(what: str, hint: str) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"{what} needs a terminal", hint)


def _label_in_terminal(session: LabellingSession, run: str) -> int:
    elsewhere = f"to label elsewhere: agentv label {run} --export labels.csv, then --import labels.csv"
    _check_terminal("labelling", elsewhere)
    from agentv.extensions.labels.screen import label_all

    before = session.left
    status = ExitStatus.PASSED
    try:
        label_all(session)
    except (KeyboardInterrupt, click.Abort):
        status = ExitStatus.INTERRUPTED
    finally:
        done = before - session.left
        click.echo(f"\n{plural(done, 'label')} saved, {plural(session.left, 'answer')} left", err=True)
        for place in session.store.places(session.suites):
            click.echo(f"  {place}", err=True)
        if session.left:
            click.echo("run the same command to continue", err=True)
        else:
            agreed, of = session.agreed
            click.echo(f"you and the judge agree on {agreed} of {of}", err=True)
            click.echo(f"see how good the judge is: agentv judge check {run}", err=True)
    return status


def _person(by: str | None) -> str:
    try:
        return (by or "").strip() or getpass.getuser()
    except (KeyError, OSError) as error:
        raise UsageError("your login name is unknown", "say who labels with --by NAME") from error


LABEL = click.Option(["--label"], is_flag=True, is_eager=True, help="Allow answers to be labelled.")


def _who_labels(context: click.Context, _: click.Parameter, given: str | None) -> str:
    """Return the person who labels, or "" without `--label`."""
    if not context.params[LABEL.name or ""]:
        if given is not None:
            raise UsageError("--by needs --label", "use both, to label as somebody else than your login name")
        return ""
    return _person(given)


BY = click.Option(
    ["--by"], metavar="NAME", callback=_who_labels, help="With --label: who labels (default: your login name)."
)


_PLACES = {name: f"agentv.extensions.labels.commands:{name}" for name in ("check", "compare")}


@click.group("judge", cls=LazyCommands, places=_PLACES, epilog="Example: agentv judge check last")
def group() -> None:
    """Measure how well a judge agrees with people.

    `agentv label` collects the labels that it is measured by.
    """


@contextmanager
def verdict_progress() -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar of verdicts if stderr is a terminal; on Ctrl-C, tell the user that verdicts are cached."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("verdicts", total=None)
        try:
            yield lambda done, total: progress.update(task, completed=done, total=total)
        except KeyboardInterrupt:
            click.echo("\nverdicts so far are cached; run the same command to continue", err=True)
            raise


@click.command("check", epilog="Example: agentv judge check last")
@click.argument("run", metavar="[RUN|LABELS]", default="last", shell_complete=runs)
@click.option("--assertion", metavar="NAME", help="Check only the judge of this assertion.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def check(run: str, assertion: str | None, *, as_json: bool) -> int:
    """Show how well the judge of a run (default: the last) agrees with people, and correct its pass rate.

    Prints the confusion matrix, TPR, TNR, accuracy and Cohen's kappa with 95% confidence intervals, how well people
    agree with each other, and every disagreement, false passes first.

    LABELS is a file in .agentv/labels, which is checked without a run.

    Exit status 2 if there are no labels, or a file of labels is invalid.
    """
    from agentv.extensions.labels.checking import check_judges
    from agentv.extensions.labels.reporting import judge_check_json, render_judge_check

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
    difference from the most accurate one.

    Verdicts are cached: after Ctrl-C or a spent budget, run the same compare to continue.

    Exit status 2 if there are no labels, or a judge does not exist or gave too few verdicts; 3 if the budget is spent.
    """
    from agentv.extensions.labels.comparing import CompareRequest, compare_judges
    from agentv.extensions.labels.reporting import judge_comparison_json, render_judge_comparison
    from agentv.user_code.guard import output_to_stderr

    with verdict_progress() as report, output_to_stderr():
        found = compare_judges(CompareRequest(judges, margin=margin / 100, **options), report)
    click.echo(judge_comparison_json(found) if as_json else render_judge_comparison(found))
    return ExitStatus.PASSED if found.is_complete else ExitStatus.WRONG
