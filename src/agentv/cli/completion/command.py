"""`agentv completion`."""

from __future__ import annotations

import click

from agentv.cli.lazy import Choice
from agentv.errors import ExitStatus

SHELLS = ("bash", "fish", "zsh")
VARIABLE = "_AGENTV_COMPLETE"
"""Variable by which the script of a shell asks for completions; click reads it."""


@click.command("completion", epilog="Example: agentv completion bash > agentv.bash")
@click.argument("shell", type=Choice(SHELLS))
def command(shell: str) -> int:
    """Print the script that completes commands and options in a shell.

    For bash, add `eval "$(agentv completion bash)"` to ~/.bashrc; for zsh, the same with `zsh` to ~/.zshrc. For fish,
    write the script to ~/.config/fish/completions/agentv.fish.
    """
    from click.shell_completion import get_completion_class

    cli = click.get_current_context().find_root().command
    found = get_completion_class(shell)
    if found is None:  # pragma: no cover - click knows the three
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(cli, {}, "agentv", VARIABLE).source())
    return ExitStatus.PASSED


def complete(cli: click.Command, instruction: str) -> int:
    """Answer a shell that asks for completions; its exit status.

    Args:
        cli: the whole command line.
        instruction: what the script of the shell put into the variable, such as `bash_complete`.
    """
    from click.shell_completion import shell_complete

    try:
        return shell_complete(cli, {}, "agentv", VARIABLE, instruction)
    except click.ClickException:  # the line names no command, so that nothing completes it
        return ExitStatus.PASSED
