"""`agentv mutate`."""

from __future__ import annotations

from typing import Any

import click

from agentv.cli.printing import print_diagnostics
from agentv.cli.values import runs
from agentv.user_code.guard import output_to_stderr


@click.command("mutate", epilog="Example: agentv mutate last --min-score 0.8")
@click.argument("run", metavar="[RUN]", default="last", shell_complete=runs)
@click.option(
    "--operators",
    metavar="NAMES",
    help="Ways to make answers worse, separated by commas, such as change-number,negate. Default: all.",
)
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="Minimum share of mutants that the checks must notice; below it, the exit status is 1.",
)
@click.option("--judge", is_flag=True, help="Also grade with assertions that call a model. Verdicts are cached.")
@click.option(
    "--budget-usd",
    type=click.FloatRange(0, min_open=True),
    metavar="USD",
    help="Budget of --judge in US dollars.",
)
@click.option("--all", "shows_all", is_flag=True, help="Show all survivors, also those that do not count.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(run: str, *, operators: str | None, shows_all: bool, as_json: bool, **options: Any) -> int:
    """Make the passing answers of a run worse, and report which worse answers the checks do not notice.

    Each mutant is a stored answer or transcript with one change, such as another number. The assertions of the eval
    files, as they are now, grade it again. No target is called, and the run is not changed. The score counts only
    mutants that change what the criteria, the expected output or an assertion names. For each survivor, a line of YAML
    is proposed that fails it and passes the original.

    RUN is an id, a directory, or `last` (default).

    Exit status: 0 the score is high enough; 1 it is below --min-score; 2 the command or a file is wrong, or there is
    nothing to mutate; 3 it is not known, because no mutant counts, a judge gave no verdict, or too many errored.
    """
    from agentv.extensions.mutate.mutating import MutationSettings, mutate
    from agentv.extensions.mutate.reporting import MOST, mutation_json, render_mutation

    names = tuple(name.strip() for name in operators.split(",") if name.strip()) if operators is not None else ()
    if operators is not None and not names:
        raise click.UsageError("--operators has no name; omit it to use all operators")
    proposals = None if shows_all or as_json else MOST
    with output_to_stderr():
        found = mutate(run, MutationSettings(names, proposals=proposals, **options))
    print_diagnostics(found.diagnostics)
    click.echo(mutation_json(found) if as_json else render_mutation(found, shows_all=shows_all))
    return found.status
