"""`agentv init`: a small project from a template, which runs offline, or skills for coding agents."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.cli.printing import print_created
from agentv.cli.values import Choice
from agentv.errors import ExitStatus
from agentv.reports.text import safe
from agentv.user_code.files import write_missing

_FILES = Path(__file__).parent

TEMPLATES = ("chatbot", "rag", "agent", "prompt", "skill", "promptfoo")
"""Folders of `templates/`; the first one is the default."""

SKILLS = "skills"
"""The folder of skills for coding agents, which are copied to `.claude/skills`."""


def _copy(source: Path, directory: Path) -> list[Path]:
    """Copy a folder without overwriting files, print what was written, and return the paths of all copies."""
    files = [file for file in sorted(source.rglob("*")) if file.is_file() and file.suffix != ".pyc"]
    made = write_missing({directory / file.relative_to(source): file.read_text(encoding="utf-8") for file in files})
    print_created(made, lambda path: safe(str(path)))
    return [*made.written, *made.kept]


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
        _copy(_FILES / SKILLS, directory / ".claude/skills")
    if template is not None or not (sdk or skill):
        paths = _copy(_FILES / "templates" / (template or TEMPLATES[0]), directory)
        eval_file = next(path for path in paths if path.name.endswith((".eval.yaml", "config.yaml")))
        run = f"agentv eval {safe(str(eval_file))}"
        rows = ((run, "grade every answer; needs no network"), ("agentv view", "read the answers in a browser"))
        width = max(len(line) for line, _ in rows)
        click.echo("\nNext:", err=True)
        for line, meaning in rows:
            click.echo(f"  {line:<{width}}  {meaning}", err=True)
    return ExitStatus.PASSED
