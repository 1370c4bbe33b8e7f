"""`agentv view`."""

from __future__ import annotations

from contextlib import nullcontext

import click

from agentv.cli.lazy import options_of_extensions
from agentv.cli.values import runs
from agentv.errors import ExitStatus


@click.command("view", epilog="Example: agentv view --port 8000")
@click.argument("named", metavar="[RUN]...", nargs=-1, shell_complete=runs)
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on (default: 4280, or the next free one).")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option("--edit", is_flag=True, help="Allow runs to be named and deleted.")
@click.option("--run", is_flag=True, help="Allow cases to be run again.")
def command(named: tuple[str, ...], port: int | None, by: str = "", *, no_open: bool, **allowed: bool) -> int:
    """Open runs in a browser, live while they run (default: all runs of the project).

    Starts a server on this machine that no other machine can reach, and prints its address. It changes nothing without
    --edit, --label or --run. With them the address contains a token, and only pages opened with it can change
    anything. Press Ctrl-C to stop it.
    """
    from agentv.app.results.project import Project
    from agentv.extensions.view.app import listening_socket, opened_in_browser, serve
    from agentv.extensions.view.state import ViewOptions, local_context, view_of

    project = Project.of(named)
    options = ViewOptions(**allowed, person=by)
    listening = listening_socket(port)
    context = local_context(project, options)
    view_of(context).opened.notify = lambda text: click.echo(text, err=True)
    token = f"?token={context.token}" if context.token else ""
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/{token}"
    click.echo(f"{project.name}: {address}\nPress Ctrl-C to stop.")
    with nullcontext() if no_open else opened_in_browser(address, secret=bool(token)):
        serve(context, listening)
    return ExitStatus.PASSED


command.params[-1:-1] = options_of_extensions("view")
