"""`agentv cache`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from agentv.errors import ExitStatus
from agentv.reports.paths import shown_from
from agentv.reports.text import one_line
from agentv.reports.totals import plural

_MEGABYTE = 1_000_000


@click.group("cache", epilog="Example: agentv cache clear --older-than 30")
def command() -> None:
    """The answers that `agentv eval --cache` keeps for later runs."""


@command.command("stats", epilog="Example: agentv cache stats --json")
@click.option("--json", "as_json", is_flag=True, help="As JSON on stdout.")
def show(*, as_json: bool) -> int:
    """Say how many answers there are, of whom, and since when."""
    from agentv.app.cache import stats

    path, found = stats()
    answers = found.answers if found else {}
    where = shown_from(str(path), str(Path.cwd()))
    if as_json:
        row = {
            "file": where,
            "answers": sum(answers.values()),
            "by_target": answers,
            "bytes": found.size if found else 0,
        }
        click.echo(json.dumps({**row, "first": found.first if found else None, "last": found.last if found else None}))
        return ExitStatus.PASSED
    if not found or not answers:
        click.echo("no answers are kept; agentv eval --cache keeps them")
        return ExitStatus.PASSED
    click.echo(f"{where}: {plural(sum(answers.values()), 'answer')}, {found.size / _MEGABYTE:.1f} MB")
    for name, count in answers.items():
        click.echo(f"  {count:>9,}  {one_line(name)}")
    click.echo(f"the first of {found.first}, the last of {found.last}")
    return ExitStatus.PASSED


@command.command("clear", epilog="Example: agentv cache clear --older-than 30")
@click.option("--older-than", type=click.FloatRange(0), metavar="DAYS", help="Only answers that are older.")
def forget(older_than: float | None) -> int:
    """Forget the answers."""
    from agentv.app.cache import clear

    click.echo(f"forgot {plural(clear(older_than), 'answer')}")
    return ExitStatus.PASSED
