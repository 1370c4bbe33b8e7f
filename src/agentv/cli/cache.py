"""`agentv cache`."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentv.cli.lazy import Commands
from agentv.errors import ExitStatus
from agentv.model.values.formatting import plural, timestamp
from agentv.reports.text import one_line, shown_from

if TYPE_CHECKING:
    from agentv.store.cassettes.cache import AnswerCache

_MEGABYTE = 1_000_000


@click.group("cache", cls=Commands, epilog="Example: agentv cache clear --older-than 30")
def command() -> None:
    """Manage the answers that `agentv eval --cache` stores for later runs."""


@command.command("stats", epilog="Example: agentv cache stats --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def stats(*, as_json: bool) -> int:
    """Show how many answers are stored, per target, and since when."""
    from agentv.store.cassettes.cache import CacheStats

    path, found = _cache_path(), CacheStats({}, 0, None, None)
    if path.is_file():
        with _open_cache(path) as cache:
            found = cache.stats()
    where, total = shown_from(str(path), str(Path.cwd())), sum(found.answers.values())
    if as_json:
        row = {"file": where, "answers": total, "by_target": found.answers}
        click.echo(json.dumps({**row, "bytes": found.size, "first": found.first, "last": found.last}))
    elif not total:
        click.echo("no stored answers; `agentv eval --cache` stores them")
    else:
        click.echo(f"{where}: {plural(total, 'answer')}, {found.size / _MEGABYTE:.1f} MB")
        for name, count in found.answers.items():
            click.echo(f"  {count:>9,}  {one_line(name)}")
        click.echo(f"oldest: {found.first}, newest: {found.last}")
    return ExitStatus.PASSED


@command.command("clear", epilog="Example: agentv cache clear --older-than 30")
@click.option("--older-than", type=click.FloatRange(0), metavar="DAYS", help="Delete only answers older than this.")
def clear(older_than: float | None) -> int:
    """Delete stored answers."""
    from agentv.app.wiring import SystemClock

    path, deleted = _cache_path(), 0
    before = None if older_than is None else timestamp(SystemClock().utc() - timedelta(days=older_than), "seconds")
    if path.is_file():
        with _open_cache(path) as cache:
            deleted = cache.clear(before)
    click.echo(f"deleted {plural(deleted, 'answer')}")
    return ExitStatus.PASSED


def _cache_path() -> Path:
    """Return the path of the cache of the repository that contains the working directory."""
    from agentv.app.results.place import CACHE, project_with
    from agentv.store.cassettes.cache import cache_file

    return cache_file(project_with(CACHE))


def _open_cache(path: Path) -> AnswerCache:
    from agentv.app.wiring import SystemClock
    from agentv.model.redaction import Redactor
    from agentv.store.cassettes.cache import AnswerCache

    return AnswerCache(path, Redactor(), SystemClock())
