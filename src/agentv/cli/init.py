"""`agentv init`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.errors import ExitStatus


@click.command("init", epilog="Example: agentv init my-evals")
@click.argument("directory", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--sdk",
    is_flag=True,
    help="Install @agentv/sdk in the project, so that graders in TypeScript and JavaScript also run on their own.",
)
def command(directory: Path, *, sdk: bool) -> int:
    """Create a project that runs at once, offline. Never changes existing files.

    With --sdk, only installs @agentv/sdk, so that `node FILE` and `bun run FILE` find it without npm.
    """
    if sdk:
        from agentv.user_code.javascript.install import install_sdk

        click.echo(f"wrote {install_sdk(directory)}", err=True)
        return ExitStatus.PASSED
    from agentv.app.authored.init import start_project
    from agentv.reports.text.escaping import safe

    started = start_project(directory)
    for path in started.written:
        click.echo(f"wrote {safe(str(directory / path))}", err=True)
    for path in started.kept:
        click.echo(f"kept {safe(str(directory / path))}, which already existed", err=True)
    click.echo(f"\nRun it: agentv eval {safe(str(directory / 'evals'))}", err=True)
    return ExitStatus.PASSED
