"""`agentv eval`."""

from __future__ import annotations

import math
from typing import Any

import click

from agentv.app.settings import EvalSettings, run_directory_of
from agentv.cli.formats import chosen_format, format_options
from agentv.cli.progress import follow
from agentv.errors import UsageError
from agentv.model.values import Json


class Finite(click.FloatRange):
    """A number within bounds; `nan` and `inf` are numbers to Python and none to a person."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number.

        Raises:
            BadParameter: it is none, or not finite.
        """
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


@click.command("eval", epilog="Example: agentv eval evals/ --target 'cli:./my-agent {PROMPT}' --workers 20")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("-t", "--target", "targets", multiple=True, metavar="TARGET", help="Whom to ask.")
@click.option("--judge", metavar="TARGET", help="Who grades rubrics.")
@click.option("-o", "--out", "outs", multiple=True, metavar="DIR", help="Where the results go.")
@click.option("--filter", metavar="GLOB", help="Only cases whose id matches.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only cases with this tag.")
@click.option("--exclude-tag", "exclude_tags", multiple=True, metavar="TAG", help="No case with this tag.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N cases of each suite.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="N cases of all, drawn at random.")
@click.option("--seed", type=int, metavar="S", help="Draw the same sample as another run with this seed.")
@click.option("--var", "variables", multiple=True, metavar="K=V", help="A variable that wins over every case's.")
@click.option("--env-file", type=click.Path(exists=True, dir_okay=False), help="Read this .env instead of those above.")
@click.option("-j", "--workers", type=click.IntRange(1), metavar="N", help="Trials that run at once.")
@click.option("--repeat", type=click.IntRange(1), metavar="N", help="Samples of each case.")
@click.option("--until", type=click.Choice(("decided",)), help="Sample a case only until its pass rate is decided.")
@click.option("--alpha", type=Finite(0, 0.5, min_open=True), metavar="X", help="How often that may be wrong; 0.05.")
@click.option("--threshold", type=Finite(0, 1), metavar="X", help="Pass mark of every case.")
@click.option("--timeout", "timeout_s", type=Finite(0, min_open=True), metavar="S", help="For one attempt.")
@click.option("--max-errors", type=click.IntRange(1), metavar="N", help="Stop after N errored trials.")
@click.option("--budget-usd", type=Finite(0, min_open=True), metavar="USD", help="Spend no more than this.")
@click.option("--budget-tokens", type=click.IntRange(1), metavar="N", help="Use no more tokens than this.")
@click.option("--fail-fast", is_flag=True, help="Stop after the first trial that fails or errs.")
@click.option("--resume", is_flag=False, flag_value="last", metavar="RUN", help="Go on with a run.")
@click.option("--rerun", type=click.Choice(("failed", "errored")), help="Do these trials of the run anew.")
@click.option(
    "--regrade", is_flag=False, flag_value="last", metavar="RUN", help="Grade the answers of a run; no target is asked."
)
@click.option("--cache/--no-cache", default=None, help="Use answers of earlier runs, and keep these for later.")
@click.option("--record", metavar="FILE", help="Keep what targets, judges and embedders say in a cassette.")
@click.option("--record-code", is_flag=True, help="Keep what scripts and other code of yours say there too.")
@click.option("--replay", metavar="FILE", help="Take it from a cassette: nobody is asked.")
@click.option(
    "--replay-mode",
    type=click.Choice(("strict", "new")),
    default="strict",
    help="What the cassette lacks: an error, or asked and added to it.",
)
@click.option("--list", "lists", is_flag=True, help="Only show what would run; nothing is called.")
@format_options("The results as one JSON object on stdout; the same as --format json.")
@click.option("-q", "--quiet", is_flag=True, help="Only the totals, and exams that did not go well.")
@click.option("--no-progress", is_flag=True, help="No live progress.")
@click.option("--strict", is_flag=True, help="Warnings of the files fail.")
def command(paths: tuple[str, ...], **options: Any) -> int:
    """Run the cases of eval files and judge the answers.

    Exit status: 0 every case passed, 1 some failed, 2 something is wrong and nothing ran, 3 some errored or were not
    run, 130 interrupted.
    """
    return run(paths, options)


def run(paths: tuple[str, ...], options: dict[str, Any], *, promotes: bool = False) -> int:
    """Run eval files as the options of `agentv eval` say; those that are not given are as nobody gave them.

    Args:
        paths: of the command line.
        options: by the names of the command's parameters.
        promotes: say of every exam whether its prompt may be promoted now.
    """
    form = chosen_format(options.pop("format_name"), as_json=options.pop("as_json"))
    looks = {"form": form, **{name: options.pop(name) for name in ("quiet", "no_progress")}}
    out = run_directory_of(options.pop("outs"))
    variables = dict(_variable(text) for text in options.pop("variables", ()))
    lists = options.pop("lists")
    settings = EvalSettings(paths=paths, out=out, variables=variables, **options)
    if lists:
        from agentv.cli.listing import show_listing

        if form not in ("text", "json"):
            raise UsageError(f"--list is told as text or json, not as {form}")
        return show_listing(settings, as_json=form == "json", quiet=looks["quiet"])
    return follow(settings, **looks, promotes=promotes)


def _variable(text: str) -> tuple[str, Json]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--var takes NAME=VALUE, found '{text}'")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the value of --var {name} is not UTF-8") from error
    return name.strip(), value
