"""`agentv help`, `explain`, `schema`, `completion` and `plugins`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from msgspec import to_builtins

from agentv.cli.printing import print_json
from agentv.cli.values import Choice, codes
from agentv.errors import ExitStatus
from agentv.reports.text import aligned, one_line, shown_from


@click.command("help", epilog="Example: agentv help results list")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...]) -> int:
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


@click.command("explain", epilog="Example: agentv explain unknown-assertion")
@click.argument("code", required=False, shell_complete=codes)
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def explain_command(code: str | None, *, as_json: bool) -> int:
    """Explain a code, with an example and the fix. Without a CODE, list all codes.

    Exit status: 2 if there is no such code.
    """
    from agentv.app.authored.reference import GROUPS, explanation
    from agentv.reports.diagnostics import codes_data, render_codes, render_explanation

    found = None if code is None else explanation(code)
    if as_json:
        print_json(codes_data(GROUPS) if found is None else to_builtins(found))
    else:
        click.echo(render_codes(GROUPS) if found is None else render_explanation(found))
    return ExitStatus.PASSED


KINDS = ("eval", "targets", "template", "meta", "exam")


@click.command("schema", epilog="Example: agentv schema > eval-schema.json")
@click.option("--kind", type=Choice(KINDS), default="eval", show_default=True, help="Kind of file.")
def schema_command(kind: str) -> int:
    """Print the JSON Schema of eval files, for editors.

    The schema is generated from the declarations that the loader checks files with.

    In a project (a directory with .agentv, or one below it), it lists the assertion types in .agentv/assertions and
    rejects all other names. Elsewhere, it rejects only names that are one slip away from a known one.
    """
    from agentv.app.authored.reference import in_project, schema_text

    here = str(Path.cwd())
    click.echo(schema_text(kind, here if in_project(here) else None), nl=False)
    return ExitStatus.PASSED


SHELLS = ("bash", "fish", "zsh")
VARIABLE = "_AGENTV_COMPLETE"
"""Environment variable with which the shell's script requests completions; click reads it."""


@click.command("completion", epilog="Example: agentv completion bash > agentv.bash")
@click.argument("shell", type=Choice(SHELLS))
def completion_command(shell: str) -> int:
    """Print the script that completes commands and options in a shell.

    For bash, add `eval "$(agentv completion bash)"` to ~/.bashrc; for zsh, the same with `zsh` to ~/.zshrc. For fish,
    write the script to ~/.config/fish/completions/agentv.fish.
    """
    from click.shell_completion import get_completion_class

    cli = click.get_current_context().find_root().command
    found = get_completion_class(shell)
    if found is None:  # pragma: no cover - click supports all of them
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(cli, {}, "agentv", VARIABLE).source())
    return ExitStatus.PASSED


def complete(cli: click.Command, instruction: str) -> int:
    """Print completions for a shell and return the exit status.

    Args:
        cli: the root command.
        instruction: value of the variable that the shell's script set, such as `bash_complete`.
    """
    from click.shell_completion import shell_complete

    try:
        return shell_complete(cli, {}, "agentv", VARIABLE, instruction)
    except click.ClickException:  # the line has an unknown command, so there are no completions
        return ExitStatus.PASSED


_HEADINGS = ("KIND", "NAME", "PACKAGE", "VERSION", "STATUS", "DESCRIPTION")


@click.command("plugins", epilog="Example: agentv plugins --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(*, as_json: bool) -> int:
    """List agentv's extensions, and installed plugins with their packages and versions.

    Loads every plugin and says what is wrong with those that cannot be used.

    Exit status: 2 if a plugin is broken.
    """
    from agentv.app.plugins import list_extensions, list_plugins

    found = (*list_extensions(), *list_plugins())
    if as_json:
        click.echo(json.dumps([to_builtins(one) for one in found], ensure_ascii=False, indent=2))
    else:
        here = str(Path.cwd())
        rows = [(one.kind, one.name, one.package, one.version or "-", one.status, one.summary) for one in found]
        heading, *table = aligned([_HEADINGS, *(tuple(map(one_line, row)) for row in rows)])
        lines = [heading]
        for row, one in zip(table, found, strict=True):
            added = (one.adds or {}).items()
            lines += [row, *(one_line(f"           {kind}: {', '.join(names)}") for kind, names in added)]
        for one in found:
            if one.problem is not None:
                severity = "warning" if one.status == "shadowed" else "error"
                place = f"{one_line(shown_from(one.file, here))}:{one.line}"
                lines += ["", f"{severity}[{one.code}]: {one_line(one.problem)}"]
                lines += [f"  registered in {place}", f"  {one_line(one.hint or '')}"]
        click.echo("\n".join(lines))
    return ExitStatus.WRONG if any(one.status == "broken" for one in found) else ExitStatus.PASSED
