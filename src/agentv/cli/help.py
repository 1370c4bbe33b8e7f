"""`agentv help`."""

from __future__ import annotations

import click

from agentv.errors import ExitStatus


@click.command("help", epilog="Example: agentv help results list")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...]) -> int:
    """Explain a command and its options; without COMMAND, list all commands."""
    found = ctx.find_root()
    for word in words:
        group = found.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"'{found.command_path}' has no commands", ctx)
        inner = group.get_command(found, word)
        if inner is None:
            raise click.UsageError(f"no command '{word}' in '{found.command_path}'", ctx)
        found = click.Context(inner, parent=found, info_name=word)
    click.echo(found.get_help())
    return ExitStatus.PASSED
