"""`agentv init`: a small project from a template, or skills for coding agents. Each runs offline."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from agentv.authoring.source.files import is_file
from agentv.cli.values import Choice
from agentv.errors import ExitStatus, UsageError
from agentv.reports.text import safe
from agentv.user_code.files import store_error

_FILES = Path(__file__).parent

TEMPLATES = ("chatbot", "rag", "agent", "prompt", "skill", "promptfoo")
"""Folders of `templates/`; the first one is the default."""

SKILLS = "skills"
"""The folder of skills for coding agents, which belong in `.claude/skills`."""


class Started(Struct, frozen=True):
    """Paths in the project: files that were written, and existing files that were left unchanged."""

    written: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def eval_file(self) -> str:
        """The file that `agentv eval` takes; only of a template."""
        return next(path for path in (*self.written, *self.kept) if path.endswith((".eval.yaml", "config.yaml")))


def _copied(source: Path, directory: Path, below: str = "") -> Started:
    written, kept = list[str](), list[str]()
    for file in sorted(source.rglob("*")):
        if file.is_file() and file.suffix != ".pyc":
            path = str(Path(below) / file.relative_to(source))
            place = directory / path
            text = file.read_text(encoding="utf-8")
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("x", encoding="utf-8") as new:
                    new.write(text)
                written.append(path)
            except OSError as error:
                if not is_file(str(place)):
                    raise store_error("write", place, error) from error
                kept.append(path)
    return Started(tuple(written), tuple(kept))


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
        _report(directory, _copied(_FILES / SKILLS, directory, ".claude/skills"))
    if template is None and str(directory) in TEMPLATES and not directory.exists():
        named = f"agentv init {directory} --template {TEMPLATES[0]}"
        hint = f"agentv init --template {directory}; for a directory of this name: {named}"
        raise UsageError(f"'{directory}' is a template, and would be a directory here", hint)
    if template is not None or not (sdk or skill):
        started = _copied(_FILES / "templates" / (template or TEMPLATES[0]), directory)
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
