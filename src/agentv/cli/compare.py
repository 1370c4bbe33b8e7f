"""`agentv compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from agentv.errors import ExitStatus

if TYPE_CHECKING:
    from agentv.model.comparison import Comparison, Matrix

_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command("compare", epilog="Example: agentv compare 20261121T140322Z-7f3a last --margin 0.02")
@click.argument("runs", nargs=-1, required=True, metavar="BASE CANDIDATE [MORE]...")
@click.option(
    "--margin",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="X",
    help="A difference of the mean score that does not matter (0).",
)
@click.option(
    "--alpha",
    type=_SHARE,
    default=0.05,
    metavar="X",
    help="How often a difference may be claimed where there is none (0.05).",
)
@click.option(
    "--fail-on",
    type=click.Choice(("regression", "any")),
    default="regression",
    help="Exit with 1 where it is shown to be worse (regression), or also where a case passed and now does not (any).",
)
@click.option("--by", type=click.Choice(("suite", "tag")), help="Compare each suite, or the cases of each tag, too.")
@click.option("--cluster", metavar="KEY", help="Cases with one value of this metadata hang together, and count as one.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help="Only this target: once for all runs, or once for each of them.",
)
@click.option("--edited", is_flag=True, help="Compare cases that were edited between the runs, too.")
@click.option("--partial", is_flag=True, help="Take runs that are still being written.")
@click.option(
    "--limit", type=click.IntRange(0), default=20, metavar="N", help="How many of the cases that moved are shown (20)."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON on stdout.")
def command(*, runs: tuple[str, ...], as_json: bool, fail_on: Literal["regression", "any"], **chosen: Any) -> int:
    """Say whether the candidate is better than the base, worse, or whether that cannot be told.

    A run is an id, a directory, or 'last'. Cases are matched by suite and id; those of only one of the runs, those that
    were edited in between and those that errored are listed, and in no number. Of more than two runs each is compared
    with each.

    Exit status: 0 nothing is shown to be worse, 1 a candidate is worse than the base, 2 the runs cannot be compared,
    3 no case that both hold was judged in both.
    """
    from agentv.app.compare.comparing import Asked, compare
    from agentv.model.comparison import Question
    from agentv.reports.comparison_json import comparison_json

    asked = Asked(runs, chosen.pop("targets"), chosen.pop("partial"))
    found = compare(asked, Question(**chosen))
    if as_json:
        click.echo(comparison_json(found, here=str(Path.cwd())))
    else:
        _print(found)
    _warn(found)
    if fail_on == "any":
        _name_lost(found.against_base)
    return _status(found.against_base, fail_on)


def _print(found: Comparison | Matrix) -> None:
    from agentv.cli.prompt.looks import width_and_color
    from agentv.model.comparison import Matrix
    from agentv.reports.comparison import render_comparison
    from agentv.reports.comparison_matrix import render_matrix

    _, color = width_and_color()
    shown = render_matrix(found) if isinstance(found, Matrix) else render_comparison(found, color=color)
    click.echo(shown, color=color)


def _warn(found: Comparison | Matrix) -> None:
    from agentv.reports.comparison import warnings

    for one in found.against_base:
        for warning in warnings(one):
            click.echo(f"warning: {warning}", err=True)


def _name_lost(against: Sequence[Comparison]) -> None:
    from agentv.reports.comparison import lost_line

    for one in against:
        if one.lost:
            click.echo(f"fails: {lost_line(one)}", err=True)


def _status(against: Sequence[Comparison], fail_on: Literal["regression", "any"]) -> int:
    if any(one.shown_worse or (fail_on == "any" and one.lost) for one in against):
        return ExitStatus.FAILED
    return ExitStatus.ERRORED if any(one.whole is None for one in against) else ExitStatus.PASSED
