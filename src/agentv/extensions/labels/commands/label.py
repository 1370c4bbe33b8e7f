"""`agentv label`."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from agentv.cli.values import runs
from agentv.errors import ExitStatus, UsageError
from agentv.extensions.labels.stats import SAMPLE

if TYPE_CHECKING:
    from agentv.extensions.labels.labelling import LabellingSession


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

    With --rate every answer is shown, in the order of the eval files and with how its case ended: 1 good, 0 bad (again:
    taken back), c comment, Enter next. Ratings change no verdict and no pass rate.

    To label in a browser: agentv view --label. To label elsewhere, --export to a .csv file, fill in `label` (pass, fail
    or unsure) and `note`, and --import.
    """
    from agentv.app.results.finding import whole_or_last
    from agentv.app.results.place import RESULTS, place_holding

    run = named or whole_or_last(place_holding(RESULTS))
    export_to, import_from = files["export_to"], files["import_from"]
    if rate:
        return _rated(run, _person(by))
    if export_to is not None and import_from is not None:
        raise UsageError("--export and --import conflict", "use one of them")
    if import_from is not None:
        from agentv.extensions.labels.exchange import import_labels
        from agentv.model.values.formatting import plural

        added = import_labels(run, import_from, _person(by))
        click.echo(
            f"{plural(added.added, 'label')} added, {added.known} already known, {added.empty} left empty", err=True
        )
        if added.not_drawn:
            click.echo(f"{added.not_drawn} of them are not of the draw, so they do not correct the pass rate", err=True)
        return ExitStatus.PASSED
    from agentv.extensions.labels.labelling import open_session

    session = open_session(run, assertion, sample, seed, _person(by))
    if export_to is not None:
        from agentv.extensions.labels.exchange import export_answers
        from agentv.model.values.formatting import plural

        export_answers(session, export_to)
        written = plural(len(session.distinct), "answer")
        click.echo(f"{written} written to {export_to}; fill in 'label', then use --import", err=True)
        return ExitStatus.PASSED
    return _in_terminal(session, run)


def _rated(run: str, person: str) -> int:
    context = click.get_current_context()
    for name in ("assertion", "sample", "seed", "export_to", "import_from"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = next(one.opts[0] for one in context.command.params if one.name == name)
            raise UsageError(f"--rate and {option} conflict", "--rate shows every answer of the run")
    _check_terminal("rating", "to rate in a browser: agentv view --label")
    from agentv.extensions.labels.commands.screen import rate_all
    from agentv.extensions.labels.ratings import open_ratings
    from agentv.model.values.formatting import plural

    session = open_ratings(run, person)
    status = ExitStatus.PASSED
    try:
        rate_all(session)
    except (KeyboardInterrupt, click.Abort):
        status = ExitStatus.INTERRUPTED
    rated = sum(session.own(answer) is not None for answer in session.answers)
    click.echo(f"\nyou rated {rated} of {plural(len(session.answers), 'answer')} of this run", err=True)
    for place in session.kept.places({suite for suite, _, _ in session.answers}) if rated else ():
        click.echo(f"  {place}", err=True)
    return status


def _check_terminal(what: str, hint: str) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"{what} needs a terminal", hint)


def _in_terminal(session: LabellingSession, run: str) -> int:
    elsewhere = f"to label elsewhere: agentv label {run} --export labels.csv, then --import labels.csv"
    _check_terminal("labelling", elsewhere)
    from agentv.extensions.labels.commands.screen import label_all
    from agentv.model.values.formatting import plural

    before = session.left
    status = ExitStatus.PASSED
    try:
        label_all(session)
    except (KeyboardInterrupt, click.Abort):
        status = ExitStatus.INTERRUPTED
    finally:
        done = before - session.left
        click.echo(f"\n{plural(done, 'label')} saved, {plural(session.left, 'answer')} left", err=True)
        for place in session.kept.places(session.suites):
            click.echo(f"  {place}", err=True)
        if session.left:
            click.echo("run the same command to continue", err=True)
        else:
            agreed, of = session.agreed
            click.echo(f"you and the judge agree on {agreed} of {of}", err=True)
            click.echo(f"see how good the judge is: agentv judge check {run}", err=True)
    return status


def _person(by: str | None) -> str:
    """Who labels."""
    try:
        return (by or "").strip() or getpass.getuser()
    except (KeyError, OSError) as error:
        raise UsageError("your login name is unknown", "say who labels with --by NAME") from error


LABEL = click.Option(["--label"], is_flag=True, is_eager=True, help="Allow answers to be labelled.")


def _who_labels(context: click.Context, _: click.Parameter, given: str | None) -> str:
    """Who labels; empty: nobody may."""
    if not context.params[LABEL.name or ""]:
        if given is not None:
            raise UsageError("--by needs --label", "use both, to label as somebody else than your login name")
        return ""
    return _person(given)


BY = click.Option(
    ["--by"], metavar="NAME", callback=_who_labels, help="With --label: who labels (default: your login name)."
)
