"""`agentv init`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.app.authored.init import TEMPLATES, Started, start_project, write_skills
from agentv.cli.values import Choice
from agentv.errors import ExitStatus, UsageError
from agentv.reports.text.escaping import safe


@click.command("init", epilog="Example: agentv init my-bot --template rag")
@click.argument("directory", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option("--template", type=Choice(TEMPLATES), help=f"What to make an example of (default: {TEMPLATES[0]}).")
@click.option("--skill", is_flag=True, help="Write skills for coding agents: how to write evals and improve checks.")
@click.option(
    "--sdk",
    is_flag=True,
    help="Install @agentv/sdk in the project, so that graders in TypeScript and JavaScript also run on their own.",
)
def command(directory: Path, *, template: str | None, skill: bool, sdk: bool) -> int:
    """Write a small example that runs at once, offline. Never changes existing files.

    With --skill or --sdk, writes only these.
    """
    if sdk:
        from agentv.user_code.javascript.runtime import install_sdk

        click.echo(f"wrote {safe(str(install_sdk(directory)))}", err=True)
    if skill:
        _report(directory, write_skills(directory))
    if template is None and str(directory) in TEMPLATES and not directory.exists():
        named = f"agentv init {directory} --template {TEMPLATES[0]}"
        hint = f"agentv init --template {directory}; for a directory of this name: {named}"
        raise UsageError(f"'{directory}' is a template, and would be a directory here", hint)
    if template is not None or not (sdk or skill):
        started = start_project(directory, template or TEMPLATES[0])
        _report(directory, started)
        run = f"agentv eval {safe(str(directory / started.eval_file))}"
        rows = ((run, "grade every answer; needs no network"), ("agentv view", "read the answers in a browser"))
        width = max(len(line) for line, _ in rows)
        click.echo("\nNext:", err=True)
        for line, meaning in rows:
            click.echo(f"  {line:<{width}}  {meaning}", err=True)
    return ExitStatus.PASSED


def _report(directory: Path, started: Started) -> None:
    for path in started.written:
        click.echo(f"wrote {safe(str(directory / path))}", err=True)
    for path in started.kept:
        click.echo(f"kept {safe(str(directory / path))}, which already existed", err=True)
