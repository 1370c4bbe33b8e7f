"""`agentv check`."""

from __future__ import annotations

from typing import Any

import click

from agentv.app.settings import EvalSettings
from agentv.cli.completion.values import files
from agentv.cli.options.expected import Choice
from agentv.cli.printing import print_diagnostics


@click.command("check", epilog="Example: agentv check evals/ --oracle")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=files)
@click.option("--oracle", is_flag=True, help="Also require that the solution of each case passes.")
@click.option("--filter", metavar="GLOB", help="Check only cases whose id matches.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Check only cases with this tag. Repeatable.")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Check only this variant. Repeatable.")
@click.option("--judge", metavar="TARGET", help="Model that grades rubrics.")
@click.option("-j", "--workers", type=click.IntRange(1), metavar="N", help="Number of trials to run concurrently.")
@click.option("--sandbox", type=Choice(("none", "bwrap", "docker")), help="What confines agents to their workspaces.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(paths: tuple[str, ...], *, oracle: bool, as_json: bool, **options: Any) -> int:
    """Check that cases fail an agent that does nothing, and that they are graded the same twice.

    The agent answers "Done." and leaves its workspace as it is; it also tries to read the hidden files of each case.
    With --oracle the `solution` of each case (a patch, files or commands), or its expected output where the case has no
    workspace, must pass. Targets are not called. Judges are, for cases that use them.

    Exit status: 0 all cases are sound; 1 some are not, or have no solution; 2 a file or the command is wrong; 3 a case
    could not be graded.
    """
    from agentv.extensions.agents.reports.check import check_json, render_check
    from agentv.extensions.agents.without_agent.checking import check_cases

    settings = EvalSettings(paths=paths, **options)
    found = check_cases(settings, oracle=oracle)
    print_diagnostics(found.diagnostics)
    click.echo(check_json(found) if as_json else render_check(found))
    return found.status
