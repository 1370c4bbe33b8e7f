"""`agentv push`."""

from __future__ import annotations

import os
import time

import click

from agentv.cli.completion.values import runs
from agentv.errors import AgentvError, ExitStatus, UsageError


@click.command("push", epilog="Example: agentv push last --remote https://evals.example.org/projects/support")
@click.argument("run", metavar="[RUN]...", nargs=-1, shell_complete=runs)
@click.option(
    "--remote",
    metavar="URL",
    help="Project on the server, such as https://HOST/projects/NAME (default: $AGENTV_REMOTE, else `results.remote` of "
    ".agentv/config.yaml).",
)
@click.option("--all", "every", is_flag=True, help="Push every run of this project.")
def command(run: tuple[str, ...], remote: str | None, *, every: bool) -> int:
    """Push runs (default: the last) to a team's server. Sends only what the server lacks.

    A push that was interrupted continues where it stopped. The token comes from $AGENTV_TOKEN, else from
    `results.token` of .agentv/config.yaml.

    Sends run.json, rows, summary.json and artifacts. The journal stays on this machine, so a run is resumed here.
    """
    if run and every:
        raise UsageError("RUN and --all conflict", "use one of them")
    from agentv.app.push.choosing import chosen_remote, chosen_runs
    from agentv.app.push.pushing import push_run
    from agentv.app.push.remote import Connection
    from agentv.reports.commands.push import render_pushed

    paths = chosen_runs(run, every=every)
    found = chosen_remote(remote, os.environ)
    if found.is_exposed:
        click.echo(
            "warning: the address is http://, so the token and the runs are not encrypted on their way", err=True
        )
    failed = 0
    with Connection(found, sleep=_wait) as connection:
        for path in paths:
            try:
                click.echo(render_pushed(push_run(path, connection, os.environ)), err=True)
            except AgentvError as error:
                if len(paths) == 1:
                    raise
                failed += 1
                from agentv.cli.printing import print_error

                print_error(error)
    if failed:
        click.echo(f"{failed} of {len(paths)} runs were not pushed", err=True)
    return ExitStatus.ERRORED if failed else ExitStatus.PASSED


def _wait(seconds: float) -> None:
    click.echo(f"the server does not answer; trying again in {seconds:g} s (Ctrl-C to stop)", err=True)
    time.sleep(seconds)
