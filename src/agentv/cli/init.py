"""`agentv init`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.errors import ExitStatus, UsageError


@click.command("init", epilog="Example: agentv init --sdk")
@click.argument("directory", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option("--sdk", is_flag=True, help="Write @agentv/sdk into .agentv/node_modules, for bare runs of assertions.")
def command(directory: Path, *, sdk: bool) -> int:
    """Set up a project. With --sdk, `node FILE` and `bun run FILE` find @agentv/sdk without npm."""
    if not sdk:
        raise UsageError("'init' without --sdk is known and not supported yet [not-yet]", "copy examples/quickstart")
    from agentv.assertions.javascript.install import install_sdk

    click.echo(f"wrote {install_sdk(directory)}", err=True)
    return ExitStatus.PASSED
