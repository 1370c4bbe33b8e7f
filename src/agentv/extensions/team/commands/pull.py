"""`agentv pull`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agentv.cli.lazy import Commands
from agentv.errors import ExitStatus
from agentv.model.values.formatting import plural


@click.group("pull", cls=Commands, epilog="Example: agentv pull labels")
def group() -> None:
    """Download labels from a team's server."""


@group.command("labels", epilog="Example: agentv pull labels --remote https://evals.example.org/projects/support")
@click.option(
    "--remote",
    metavar="URL",
    help="Project on the server, such as https://HOST/projects/NAME (default: $AGENTV_REMOTE, else `results.remote` of "
    ".agentv/config.yaml).",
)
def labels(remote: str | None) -> int:
    """Add the server's labels to yours.

    They are appended to .agentv/labels; labels that are there stay. `agentv push` sends labels.

    The token comes from $AGENTV_TOKEN, else from `results.token` of .agentv/config.yaml. It needs the scope `read`.
    """
    from agentv.extensions.team.commands.push import wait_for_server
    from agentv.extensions.team.commands.pushing import EXPOSED
    from agentv.extensions.team.push.choosing import chosen_remote, project_root
    from agentv.extensions.team.push.connection import Connection
    from agentv.extensions.team.push.labels import pull_labels
    from agentv.reports.text.paths import shown_from

    found = chosen_remote(remote, os.environ)
    if found.is_exposed:
        click.echo(EXPOSED, err=True)
    with Connection(found, sleep=wait_for_server) as connection:
        added, files = pull_labels(project_root(), connection)
    here = str(Path.cwd())
    named = ", ".join(shown_from(str(path.absolute()), here) for path in files)
    click.echo(f"{plural(added, 'new label')}: {named}" if added else "no new labels", err=True)
    return ExitStatus.PASSED
