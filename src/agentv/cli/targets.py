"""`agentv targets`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import get_terminal_size

import click

from agentv.cli.printing import print_diagnostics, print_json, takes_color
from agentv.errors import ExitStatus
from agentv.user_code.guard import output_to_stderr


@click.command("targets", epilog="Example: agentv targets openai:gpt-5-mini --check")
@click.argument("names", nargs=-1, metavar="[TARGET]...")
@click.option(
    "--check", is_flag=True, help="Call each target once with a short prompt (agents: one turn), and try the sandboxes."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0.1, 3600),
    default=30.0,
    metavar="SECONDS",
    help="Time limit for one call, in seconds; a target's shorter 'timeout_s' takes precedence.",
)
@click.option(
    "--env-file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Read this file instead of the project's .env files.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(names: tuple[str, ...], *, check: bool, timeout_s: float, env_file: str | None, as_json: bool) -> int:
    """List configured targets and whether their API keys are set.

    --check makes one short call to each model, and has each agent work on one prompt as a run would: in an empty
    workspace, confined, its model calls through the gateway. It says what it calls before it does.

    A TARGET is a name in `.agentv/targets.yaml` or a `provider:model` string. If no target is configured, lists those
    that you could use. Never shows a key.

    Exit status: 2 if a file is wrong; 3 if a call failed.
    """
    from agentv.app.targets import TargetsRequest, list_targets
    from agentv.reports.targets import check_plan, render_targets, targets_data

    request = TargetsRequest(names, check, timeout_s, dict(os.environ), env_file)

    def announce(models: int, agents: tuple[str, ...]) -> None:
        click.echo(check_plan(models, agents, timeout_s), err=True)

    with output_to_stderr():
        found = list_targets(request, announce)
    print_diagnostics(found.diagnostics)
    here = str(Path.cwd())
    if as_json:
        print_json(targets_data(found.listing, here=here))
    else:
        watched = sys.stdout.isatty()
        width = get_terminal_size().columns if watched else None
        color = takes_color(sys.stdout)
        click.echo(render_targets(found.listing, here=here, width=width, color=color), color=color)
    return ExitStatus.ERRORED if found.listing.failed else ExitStatus.PASSED
